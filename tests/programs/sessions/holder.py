"""Have a named session until a line is read; then use it."""

import sys

import gt

gt.attach(sys.argv[2], or_create=True, address=sys.argv[1])
gt.keep("number", 3)
x = gt.ones(3)
print("has it", flush=True)
sys.stdin.readline()
print((x + 1).sum().item())
