"""Compute in two sessions, and in a fork of this process; print the values."""

import os

import gt

x = gt.ones(3) + 1
print(x.sum().item(), flush=True)
child = os.fork()
if child == 0:
    print((x * 100).sum().item(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
with gt.Session(workers=2):
    print((gt.ones(5) * 7).sum().item())
print((x * 3).sum().item())
