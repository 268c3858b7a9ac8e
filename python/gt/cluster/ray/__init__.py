"""Clusters on Ray: an actor for the server and one for each worker, in placement groups."""

from gt.cluster.ray.cluster import Ray

__all__ = ["Ray"]
