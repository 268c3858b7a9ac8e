"""Exceed a quota of 100 MB; print the error, and results computed later. Argument: the address."""

import sys

import gt

gt.connect(sys.argv[1])
weights = gt.ones(10_000_000)  # the first tensor
moments = weights + 1  # the second tensor
other = gt.zeros(10_000_000)  # the third tensor
small = gt.ones(3) + 1
try:
    other.sum().item()
except gt.WorkerError as error:
    print(error)
print(small.tolist(), moments[0].item())
del moments
print((weights + 2)[0].item())
