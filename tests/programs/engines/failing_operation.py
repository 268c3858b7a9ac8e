"""Compute tanh or sort, which may fail, then something else. Arguments: the name, an address."""

import sys

import gt

name, *address = sys.argv[1:]
if address:
    gt.connect(address[0])
x = gt.ones(4) + 1
y = (x.tanh() if name == "tanh" else x.sort()[0]) * 2
try:
    print(y.tolist())
except gt.WorkerError as error:
    print(error)
print((x * 3).tolist())
