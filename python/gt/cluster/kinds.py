"""The kinds of clusters, by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.kubernetes import Kubernetes
from gt.cluster.local import Local
from gt.cluster.ray import Ray
from gt.cluster.slurm import Slurm
from gt.cluster.ssh import Ssh

_ALL: dict[str, type[Cluster]] = {of.kind: of for of in (Local, Ssh, Slurm, Ray, Kubernetes)}

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


#: The file in the folder of a cluster by which its kind attaches to it.
_RECORDS = {"cluster.json": "slurm", "ray.json": "ray", "kubernetes.json": "kubernetes"}


def kept_in(folder: Path) -> str | None:
    """Return the kind of the cluster that a folder's files lead to, or None."""
    return next((kind for name, kind in _RECORDS.items() if (folder / name).exists()), None)


@contextmanager
def attached(kind: str, folder: Path) -> Iterator[Any]:
    """Yield the cluster in a folder, which another program has started; detach from it after that.

    Raises:
        ClusterError: there is none, or it cannot be reached.
    """
    named: Any = find(kind)
    cluster = named.attach(folder)
    try:
        yield cluster
    finally:
        cluster.detach()
