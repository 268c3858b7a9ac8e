"""Own a cluster until a line is read, or this process is killed.

It reads a line of JSON: the name of the class, its arguments, and whether it has a forked
child, which runs until the input ends.
"""

import json
import os
import sys

import gt
import gt.cluster

kind, arguments, has_child = json.loads(sys.stdin.readline())
with getattr(gt.cluster, kind)(**arguments) as cluster:
    if has_child and os.fork() == 0:
        os.read(0, 1)
        os._exit(0)
    gt.connect(cluster.address)
    print((gt.ones(3) + 1).sum().item(), flush=True)
    sys.stdin.readline()
