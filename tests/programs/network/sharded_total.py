"""Compute a sharded sum before and after the test kills a worker. Argument: the address."""

import sys

import gt

gt.connect(sys.argv[1])
gt.register_config("rows", gt.SignalConfig(gt.ShardConfig(axis=0)))


def total():
    """Return the sum of a product of sharded matrices."""
    with gt.signal.context("rows"):
        return (gt.arange(12.0).reshape(6, 2) @ gt.ones(2, 5)).sum(dim=0)


print(total().tolist(), flush=True)
sys.stdin.readline()
for _ in range(20):
    try:
        total().tolist()
    except gt.WorkerError:
        continue
print(total().tolist())
