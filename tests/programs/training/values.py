"""Train a perceptron; print steps, and the parameters as JSON at the end."""

import json

import gt
from gt import nn, optim
from reporting import connect, steps

args = connect()
gt.manual_seed(0)
inputs, labels = gt.randn(256, 32), gt.randint(0, 10, (256,))
model = nn.Sequential(nn.Linear(32, 48), nn.Tanh(), nn.Linear(48, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for _ in steps(args):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
print(json.dumps([value.detach().flatten().tolist() for value in model.parameters()]))
