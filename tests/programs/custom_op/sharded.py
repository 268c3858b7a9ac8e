"""Call a custom operation on a sharded tensor. Argument: its sharding rule, or an empty string."""

import sys

import gt

gt.Session(workers=2).__enter__()
gt.register_config("sharded", gt.SignalConfig(gt.ShardConfig(axis=0)))
with gt.signal.context("sharded"):
    x = gt.ones(6, 2)


def results(x):
    """Return the dtypes and shapes of the two results."""
    return [(x.dtype, x.shape), (gt.int64, x.shape[:1])]


rows_of = gt.custom_op("rows", results, sharding=sys.argv[1] or None)
with gt.signal.context("sharded"):
    doubled, rows = rows_of(x)
print(doubled.sum().item(), rows.tolist())
