"""Run 60 collectives; print a sum that they do not change."""

import gt
from rows import rows

gt.manual_seed(0)
x = rows(lambda: gt.ones(6, 1000))
for _ in range(60):
    x = rows(lambda x=x: x + (x.sum(dim=0) / 6 - x) * 0.5)
print(x.sum().item())
