"""Train for 20 steps, print the last loss. Argument: the address of a server, if any."""

import sys

import gt

if sys.argv[1:]:
    gt.connect(sys.argv[1])
gt.manual_seed(1)
model = gt.nn.Sequential(gt.nn.Linear(8, 16), gt.nn.ReLU(), gt.nn.Linear(16, 3))
x, y = gt.randn(32, 8), gt.randint(0, 3, (32,))
optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
for _ in range(20):
    loss = gt.nn.cross_entropy_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
