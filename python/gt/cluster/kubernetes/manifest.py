"""The text of what is created."""

from __future__ import annotations

import json
from typing import Any

from gt.cluster.errors import ClusterError
from gt.cluster.kubernetes.objects import PLACEHOLDER, objects
from gt.cluster.kubernetes.pods import Object
from gt.cluster.kubernetes.settings import PodSettings


def manifest(settings: PodSettings, size: int, keys: dict[str, str] | None) -> str:
    """Return the objects as YAML, in the order in which they are created."""
    things = objects(settings, size, keys)
    # A round trip through JSON: YAML shows what is one object for Python as a reference otherwise.
    plain = [json.loads(json.dumps(thing)) for thing in things]
    text: str = _yaml().safe_dump_all(plain, sort_keys=False, width=100)
    shown = "" if keys else f"# The keys are not shown: {PLACEHOLDER} stands for each.\n"
    return f"# A cluster of GT: a server and its workers.\n{shown}---\n{text}"


def parsed(text: str) -> list[Object]:
    """Return the objects of a manifest."""
    return [thing for thing in _yaml().safe_load_all(text) if thing is not None]


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ClusterError(
            "gt.cluster.Kubernetes needs PyYAML, which comes with the Kubernetes client: "
            f"pip install 'kubernetes>=37'\n  {error}"
        ) from None
    return yaml
