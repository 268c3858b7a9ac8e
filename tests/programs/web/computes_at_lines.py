"""Compute on a server that is reached over its page's port: at each line that is read, once more.

usage: computes_at_lines.py ADDRESS [insecure]
"""

import sys

import gt

address, *insecure = sys.argv[1:]
gt.connect(address, insecure=bool(insecure))
x = gt.zeros(3)
print("ready", flush=True)
for _ in sys.stdin:
    x = x + 1
    print(x.sum().item(), flush=True)
