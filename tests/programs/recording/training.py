"""Train a perceptron, and use what recordings must have. Arguments: steps, a server if any."""

import sys

import gt

steps = int(sys.argv[1])
if len(sys.argv) > 2:
    gt.connect(sys.argv[2])
gt.manual_seed(3)
model = gt.nn.Sequential(gt.nn.Linear(16, 32), gt.nn.ReLU(), gt.nn.Linear(32, 4))
optimizer = gt.optim.AdamW(model.parameters(), lr=1e-2)
inputs, labels = gt.randn(64, 16), gt.arange(64) % 4
table = gt.tensor([[float(row * 7 + column) for column in range(80)] for row in range(40)])
total = gt.zeros(16)
for step in range(steps):
    noise = gt.randn(64, 16) * 0.01
    loss = gt.nn.functional.cross_entropy(model(inputs + noise), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += table[step % 40, :16]
    if step % 10 == 9:
        print(f"{loss.item():.6f}")
print(total.sum().item())
large = total[total > total.mean()]
print(large.shape[0], large.tolist())
print(table.sum(0)[:3].tolist())
try:
    table.index_select(0, gt.tensor([1, 77], dtype="int64")).sum().item()  # the failing line
except gt.WorkerError as error:
    print(str(error).splitlines()[0])
with gt.signal.context("scope-of-lovelace"):
    print((gt.ones(3) * 2).tolist())
