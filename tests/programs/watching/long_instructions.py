"""Multiply large matrices without end. Argument: the server's address."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.randn(1500, 1500)
x.sum().item()
print("at work", flush=True)
while True:
    (x @ x).sum().item()
