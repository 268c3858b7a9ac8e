"""Wait for a line while the test kills a worker; print a result and the number of recoveries."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.ones(1000)
x.sum().item()
print("ready", flush=True)
sys.stdin.readline()
print((x * 2).sum().item(), gt.status().sessions[0]["recoveries"], flush=True)
