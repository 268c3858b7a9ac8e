"""Run a loop that frees each iteration's values. Arguments: the address, a function, iterations."""

import sys

import gt
import numpy as np


def rebound(n):
    """Rebind variables."""
    x = gt.ones(60_000)
    for _ in range(n):
        y = x * 2.0
        z = y + 1
        x = z * 0.5
    return x


def data(n):
    """Add up tensors of the program's data."""
    x = s = gt.zeros(60_000)
    for i in range(n):
        x = gt.tensor(np.full(60_000, i % 3, "float32"))
        s = s + x
    return x


def window(n):
    """Keep the last two tensors in a list."""
    xs = [gt.ones(60_000)]
    for _ in range(n):
        xs.append(xs[-1] * 0.5 + 1)
        if len(xs) > 2:
            xs.pop(0)
    return xs[0]


address, kind, iterations = sys.argv[1:]
gt.connect(address)
print(globals()[kind](int(iterations))[0].item() >= 0)
