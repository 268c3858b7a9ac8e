"""Add one to a tensor at each line of input. Arguments: the address, requests of status before."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.arange(6.0)
print(x.sum().item(), flush=True)
for _ in sys.stdin:
    try:
        for _ in range(int(sys.argv[2])):
            gt.status()
        x = x + 1
        print(x.sum().item(), flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).replace("\n", " "), flush=True)
