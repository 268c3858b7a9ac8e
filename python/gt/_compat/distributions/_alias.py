"""Properties that are other attributes."""

from __future__ import annotations

from operator import attrgetter
from typing import Any


def alias(path: str, doc: str) -> Any:
    """Return a property for another attribute: `alias("base_dist.scale", "The scale.")`."""
    return property(attrgetter(path), doc=doc)
