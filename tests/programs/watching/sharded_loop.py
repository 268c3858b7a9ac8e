"""Multiply matrices that are sharded over two workers, until a line is read."""

import gt
from loop import start

lines = start("2")
gt.register_config("rows", gt.SignalConfig(shard=gt.ShardConfig(axis=0)))
x = gt.randn(300, 300)
(x + 1).sum().item()
print("at work", flush=True)
while not lines:
    (gt.signal.tensor(x, name="rows") @ x).relu().sum().item()
