"""The kinds of clusters, by name."""

from __future__ import annotations

from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.local import Local

_ALL: dict[str, type[Cluster]] = {kind.kind: kind for kind in (Local,)}

#: Those whose processes end with the program that has started them: they have an owner.
OWNED = frozenset({"local", "ssh"})


def names() -> list[str]:
    """Return the names."""
    return list(_ALL)


def find(name: str) -> type[Cluster]:
    """Return the class of a kind.

    Raises:
        ClusterError: there is none of this name.
    """
    try:
        return _ALL[name]
    except KeyError:
        raise ClusterError(
            f"there is no kind of cluster '{name}': there are {', '.join(_ALL)}"
        ) from None
