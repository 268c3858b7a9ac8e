"""Print the engines of the workers, and a sum over sharded rows. Argument: a server's address."""

import sys

import gt

if sys.argv[1:]:
    gt.connect(sys.argv[1])
gt.register_config("rows", gt.SignalConfig(gt.ShardConfig(axis=0)))
print(sorted(worker["engine"] for worker in gt.debug.get_worker_stats().values()))
with gt.signal.context("rows"):
    x = gt.arange(12).reshape(6, 2).float()
    w = gt.eye(2) * 2
    for _ in range(40):
        x = (x @ w).tanh() + x.to("bfloat16").float()
    print(round(x.sum().item(), 1))
