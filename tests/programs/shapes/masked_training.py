"""Train on rows that a mask selects, a "varying" or a "fixed" number of them; print statistics."""

import sys

import gt
import numpy as np
from gt import nn

gt.manual_seed(0)
rng = np.random.default_rng(0)
data = gt.from_numpy(rng.normal(size=(64, 10)).astype("float32"))
target = gt.from_numpy(rng.normal(size=(64, 1)).astype("float32"))
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
losses = []
for step in range(60):
    out = model(data)
    limit = 0.2 + step / 60 if sys.argv[1] == "varying" else -1
    far = (out - target).abs() > limit
    picked, wanted = out[far], target[far]
    loss = (picked - wanted).square().sum() / 64 + out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
stats = list(gt.debug.get_worker_stats().values())[0]["hotpath"]
print([stats["hot_instructions"] / stats["total_instructions"], picked.shape[0], *losses])
