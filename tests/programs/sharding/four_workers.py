"""Start four workers in this process: the start of the programs about sharding."""

import gt
from gt import ShardConfig, SignalConfig

gt.gpu_workers(4)


def register(name, **shard):
    """Configure a signal with a placement."""
    gt.register_config(name, SignalConfig(ShardConfig(**shard)))


def placement(x):
    """Return the placement and the workers of each copy of a tensor."""
    return [(copy.placement, copy.workers) for copy in gt.debug.placement(x)]
