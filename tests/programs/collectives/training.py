"""Train with sharded data, sharded weights and both; print losses and parameters."""

import sys

import gt
from gt import ShardConfig, SignalConfig

if sys.argv[1:]:
    gt.connect(sys.argv[1])
gt.manual_seed(1)
gt.register_config("rows", SignalConfig(ShardConfig(axis=0)))
gt.register_config("columns", SignalConfig(ShardConfig(axis=-1)))
gt.register_config("copies", SignalConfig(ShardConfig(replicated=True)))
for data, weights in (("rows", "copies"), ("copies", "columns"), ("rows", "rows")):
    with gt.signal.context(weights):
        model = gt.nn.Sequential(gt.nn.Linear(7, 16), gt.nn.ReLU(), gt.nn.Linear(16, 3))
    with gt.signal.context(data):
        x, y = gt.randn(33, 7), gt.randint(0, 3, (33,))
    optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
    for step in range(12):
        with gt.signal.context(data):
            loss = gt.nn.cross_entropy_loss(model(x), y)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            print(loss.item())
    for parameter in model.parameters():
        print(*parameter.flatten().tolist())
