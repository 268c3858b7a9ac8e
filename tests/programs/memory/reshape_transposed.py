"""Reshape a transposed tensor, which copies 60 MB. Argument: a server with a quota of 100 MB."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.ones(3000, 5000)
transposed = x.T
print(transposed[0, 0].item())
try:
    print(transposed.reshape(-1)[0].item())
except gt.WorkerError as error:
    print("refused" if "60.0 MB" in str(error) else error)
