"""Hold a tensor and print its sum after a line of input. Argument: the address, without a key."""

import sys

import gt

gt.connect(sys.argv[1], insecure=True)
x = gt.ones(1000)
x.sum().item()
print("step 0", flush=True)
sys.stdin.readline()
print("sum", x.sum().item(), flush=True)
