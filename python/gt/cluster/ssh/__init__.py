"""Clusters on machines that ssh reaches."""

from gt.cluster.ssh.cluster import Ssh

__all__ = ["Ssh"]
