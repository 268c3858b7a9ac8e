"""Compute on a server that ssh reaches: at each line that is read, once more.

usage: tunnel_user.py ADDRESS [KEY_FILE]
"""

import sys

import gt
from gt.session.tunnel import open_tunnel

address, *key = sys.argv[1:]
gt.connect(open_tunnel(address), *key)
x = gt.zeros(3)
print("ready", flush=True)
for _ in sys.stdin:
    x = x + 1
    print(x.sum().item(), flush=True)
