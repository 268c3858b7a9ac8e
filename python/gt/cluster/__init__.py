"""Clusters: a server and its workers, started with one line, here or by a scheduler.

    with gt.cluster.Local(workers=2) as cluster:
        gt.connect(cluster)

Each class starts one on another system: `Local` on this machine, `Ssh` on machines that ssh
reaches, `Slurm`, `Ray` and `Kubernetes` through their schedulers. `gt cluster up` does the same
from a shell.
"""

from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.kubernetes import Kubernetes
from gt.cluster.local import Local
from gt.cluster.ray import Ray
from gt.cluster.slurm import Slurm
from gt.cluster.ssh import Ssh
from gt.cluster.status import ClusterStatus

__all__ = [
    "Cluster",
    "ClusterError",
    "ClusterStatus",
    "Kubernetes",
    "Local",
    "Ray",
    "Slurm",
    "Ssh",
]
