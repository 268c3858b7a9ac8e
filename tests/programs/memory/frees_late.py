"""Exceed a quota of 100 MB, and free a tensor after 1.5 s. Argument: the server's address."""

import sys
import time

import gt

gt.connect(sys.argv[1])
x = gt.ones(20_000_000)
y = gt.ones(10_000_000)
time.sleep(1.5)
print(gt.status().sessions[0]["waits_for"].split(" for")[0])
del x
print(y[0].item())
