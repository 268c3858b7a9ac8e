"""Train; print the loss with sums of parameters, and whether tensors were spilled."""

import gt
from gt import nn

gt.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(300, 300), nn.ReLU())])
optimizer = gt.optim.Adam(model.parameters(), lr=1e-3)
x, y = gt.randn(64, 300), gt.randn(64, 300)
for _ in range(30):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), [p.sum().item() for p in model.parameters()])
print(gt.status().workers[0]["spilled_bytes"] > 0)
