"""Clusters in Kubernetes."""

from gt.cluster.kubernetes.cluster import Kubernetes

__all__ = ["Kubernetes"]
