"""Send small instructions without end. Argument: the server's address."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.ones(1000)
print("at work", flush=True)
while True:
    for _ in range(2000):
        y = x + 1
    y.sum().item()
