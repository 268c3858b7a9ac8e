"""Use a bad index in one shard; print whether the error names it, and a result computed later."""

import gt
from rows import rows

table = gt.ones(4, 4)
index = rows(lambda: gt.tensor([1] * 8 + [70], dtype=gt.int64))
total = rows(lambda: table[index].sum(dim=0) * 2)
try:
    total.tolist()
except Exception as error:
    print("index 70 is not in [-4, 4)" in str(error))
print(rows(lambda: gt.ones(9, 2).sum(dim=0) * 2).tolist())
