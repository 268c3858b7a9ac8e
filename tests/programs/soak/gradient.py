"""Compute one gradient on a server and end. Argument: the server's address."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.randn(256, 256, requires_grad=True)
(x @ x).sum().backward()
print(x.grad.shape[0])
