"""Compute in a session whose result is a number. Arguments: the address, the number."""

import sys

import gt

gt.connect(sys.argv[1])
number = int(sys.argv[2])
gt.manual_seed(number)
x = gt.randn(300, 300)
for _ in range(20):
    x = (x @ x.T).softmax(-1) + number
print(x.mean().item() - 1 / 300)
