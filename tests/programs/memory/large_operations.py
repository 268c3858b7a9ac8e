"""Run operations on 2 GB of repeated elements; print which are refused. Argument: the address."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.ones(1).expand(2**29)
print(x.sum().item())
calls = {
    "argmax": lambda: x.argmax(),
    "std": lambda: x.std(),
    "sort": lambda: x.sort()[0],
    "cumsum": lambda: x.cumsum(0),
    "matmul": lambda: x.reshape(2, -1) @ x.reshape(-1, 2),
    "index": lambda: x[gt.arange(2)],
}
for name, call in calls.items():
    try:
        call().sum().item()
        print(name)
    except gt.WorkerError:
        print("refused")
print(gt.ones(3).sum().item())
