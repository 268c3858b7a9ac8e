"""Connect and compute a sum; print it or the error. Argument: the server's address."""

import sys

import gt

try:
    gt.connect(sys.argv[1])
    print(gt.ones(3).sum().item())
except Exception as error:
    print(type(error).__name__, error)
