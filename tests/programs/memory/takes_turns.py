"""Use most of a quota of 1 MB 300 times. Argument: the server's address."""

import sys

import gt

gt.connect(sys.argv[1])
for i in range(300):
    x = gt.ones(200_000) + i
    try:
        x[0].item()
    except gt.WorkerError:
        pass  # The other program holds the quota and is idle at the moment.
    del x
