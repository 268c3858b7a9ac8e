"""Clusters on SLURM."""

from gt.cluster.slurm.cluster import Slurm

__all__ = ["Slurm"]
