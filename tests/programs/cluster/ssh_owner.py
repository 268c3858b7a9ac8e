"""Own a cluster of gt.cluster.Ssh until a line is read, or this process is killed.

It reads the arguments of the class as a line of JSON.
"""

import json
import sys

import gt
import gt.cluster

arguments = json.loads(sys.stdin.readline())
with gt.cluster.Ssh(**arguments) as cluster:
    gt.connect(cluster.address)
    print((gt.ones(3) + 1).sum().item(), flush=True)
    sys.stdin.readline()
