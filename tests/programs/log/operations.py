"""Run a few operations, whose instruction log a test reads."""

import gt

a = gt.tensor([[1, 2], [3, 4]])
b = (a + a) * 2
c = b.exp()
total = (b @ c).sum()
total.item()
del a, b, c
gt.ones(2).reshape(1, 2).tolist()
