"""Train a model whose activations are sharded over all workers, until a line is read.

usage: trains_sharded.py [ADDRESS]
"""

import sys

import gt
from rounds import until_a_line

if len(sys.argv) > 1:
    gt.connect(sys.argv[1])
gt.register_config("rows", gt.SignalConfig(shard=gt.ShardConfig(axis=0)))

model = gt.nn.Linear(16, 8)
optimizer = gt.optim.Adam(model.parameters())
cache = {"batches": [gt.zeros(300, 300)]}
for _ in until_a_line():
    with gt.signal.context("rows"):
        x = gt.randn(64, 16)
        loss = (model(x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
