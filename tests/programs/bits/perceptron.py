"""Train a perceptron on three batches; print digests of the loss and the parameters."""

import gt
from digests import show
from gt import nn

model = nn.Sequential(nn.Linear(33, 65), nn.Tanh(), nn.Dropout(0.1), nn.Linear(65, 7))
optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
data, target = gt.randn(96, 33), gt.randint(0, 7, (96,))
for step in range(40):
    start = 31 * (step % 3)
    x, y = data[start : start + 31], target[start : start + 31]
    loss = nn.cross_entropy_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"step {step}", loss, *model.parameters())
