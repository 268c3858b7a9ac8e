"""Create small tensors beyond a quota of 10 MB; print the error. Arguments: the address, a kind."""

import sys

import gt

gt.connect(sys.argv[1])
base = gt.arange(1000.0)
make = {
    "whole": lambda: gt.ones(1),
    "view": lambda: base[:500],
    "empty": lambda: gt.ones(0),
}[sys.argv[2]]
tensors = []
try:
    for i in range(30_000):
        tensors.append(make())
        if i % 500 == 0:
            tensors[-1].sum().item()
    tensors[-1].sum().item()
except gt.WorkerError as error:
    print(len(tensors) > 24_000, error)
del tensors
print((base + 1).sum().item())
