"""Repeat a sequence of operations until a line is read. Argument: a server."""

import sys

import gt
from loop import start

if __name__ == "__main__":
    lines = start(*sys.argv[1:])
    x = gt.randn(200, 200)
    weight = gt.randn(200, 200)
    print("at work", flush=True)
    while not lines:
        for _ in range(20):
            hidden = (x @ weight).relu()
            loss = (hidden * hidden).sum()
            weight = weight - 1e-9 * hidden
        loss.item()
