"""Run a hot loop whose values change from step to step. Argument: the length of tensors."""

import sys

import gt

length = int(sys.argv[1])
gt.manual_seed(0)
x = gt.arange(length).float() / length - 0.3
b = gt.arange(length).float()
total = gt.zeros(length, dtype=gt.bfloat16)
for _ in range(40):
    x = (x * 0.5).exp() * 0.4 + b * 0.01
    total = total + x.to(gt.bfloat16)
    order = x.sort().indices
    noise = gt.rand(length)
print([round(value, 3) for value in x.tolist()], order.tolist())
print([round(value, 1) for value in total.tolist()], [round(v, 2) for v in noise.tolist()])
