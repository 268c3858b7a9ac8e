"""Train a perceptron. Arguments: steps, "losses" or "statistics" to print, a server if any."""

import json
import sys

import gt
import numpy as np
from gt import nn

steps, printed, *address = sys.argv[1:]
if address:
    gt.connect(*address)
gt.manual_seed(0)
rng = np.random.default_rng(0)
data = gt.from_numpy(rng.normal(size=(96, 10)).astype("float32"))
target = gt.tensor(rng.integers(0, 3, 96), dtype="int64")
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
losses = []
for step in range(int(steps)):
    start = 32 * (step % 3)
    x, y = data[start : start + 32], target[start : start + 32]
    for group in optimizer.param_groups:
        group["lr"] = 0.01 / (1 + step)
    loss = nn.cross_entropy_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 7 == 6:
        with gt.no_grad():
            losses.append(model(data).sum().item())
if printed == "losses":
    print(json.dumps(losses))
else:
    (stats,) = gt.debug.get_worker_stats().values()
    print(json.dumps(stats))
    gt.debug.print_worker_stats()
