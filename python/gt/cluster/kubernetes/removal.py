"""Removing a cluster from Kubernetes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gt.cluster.errors import ClusterError, said
from gt.cluster.kubernetes.api import KubernetesApi, NotFoundError
from gt.cluster.kubernetes.settings import PodSettings

#: How long the pods may take to end, in seconds.
_LIMIT = 60.0

#: The seconds that pods have to end: workers hand over nothing, and the server ends at once.
_GRACE = 2

#: How often it is looked whether pods have ended, in seconds.
_EVERY = 0.25


@dataclass(frozen=True)
class Made:
    """An object that was created."""

    kind: str
    name: str
    uid: str


def remove(api: KubernetesApi, settings: PodSettings, made: list[Made]) -> None:
    """Delete the objects that were created, and wait until all pods have ended.

    Raises:
        ClusterError: something is left.
    """
    if not made:
        return
    failure: ClusterError | None = None
    until, ended = time.monotonic() + _LIMIT, -_LIMIT
    # The last ones have the workers. Objects of another cluster of this name have another uid.
    for of in reversed(made):
        try:
            api.delete(of.kind, of.name, of.uid)
        except ClusterError as error:
            failure = error
            if time.monotonic() > until:
                raise
    while left := _left(api, settings, made[0]):
        if time.monotonic() > until:
            raise ClusterError(
                f"the kubernetes cluster '{settings.name}' is not removed after {_LIMIT:g} s"
                f"{said(chr(10).join(left))}"
            ) from failure
        if time.monotonic() - ended > _GRACE:
            ended = time.monotonic()
            # A ReplicaSet that is not removed yet may start others.
            api.end_pods(settings.selector, _GRACE)
        time.sleep(_EVERY)
    if failure is not None:
        raise failure


def _left(api: KubernetesApi, settings: PodSettings, root: Made) -> list[str]:
    """Return what is still there: pods, and the object that owns all."""
    found = [f"pod {of['metadata']['name']}" for of in api.pods(settings.selector)]
    try:
        there = api.get(root.kind, root.name)
    except NotFoundError:
        return found
    return [*found, f"{root.kind} {root.name}"] if there["metadata"]["uid"] == root.uid else found
