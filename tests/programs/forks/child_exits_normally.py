"""Fork; the child and then the parent run a backward pass that began before the fork."""

import os
import sys

import gt

x = gt.ones(3, requires_grad=True)
loss = (x * x).sum()
child = os.fork()
if child == 0:
    loss.backward()
    print(x.grad.tolist(), flush=True)
    sys.exit(5)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
loss.backward()
print(code, x.grad.tolist())
