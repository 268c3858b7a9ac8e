"""Train an adapter on a published base, or on an own copy of it; print the losses.

With a file's name, wait before each of the last steps until the file exists.
"""

import sys
import time
from pathlib import Path

import gt

address, base, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
gate = Path(sys.argv[4]) if len(sys.argv) > 4 else None
gt.connect(address)
model = gt.nn.Sequential(gt.nn.Linear(16, 32), gt.nn.Tanh(), gt.nn.Linear(32, 16))
if base == "own":
    gt.manual_seed(5)
    model = gt.nn.Sequential(gt.nn.Linear(16, 32), gt.nn.Tanh(), gt.nn.Linear(32, 16))
    model.requires_grad_(False)
else:
    gt.shared(base, into=model)
gt.manual_seed(11)
down, up = gt.randn(16, 2) * 0.1, gt.zeros(2, 16)
adapter = [tensor.requires_grad_() for tensor in (down, up)]
optimizer = gt.optim.Adam(adapter, lr=0.05)
print("begins", flush=True)
losses = []
for step in range(steps):
    while gate is not None and step == steps // 2 and not gate.exists():
        time.sleep(0.05)
    x = gt.randn(8, 16)
    loss = ((model(x) + x @ down @ up) - x.roll(1, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
print([loss.item() for loss in losses])
