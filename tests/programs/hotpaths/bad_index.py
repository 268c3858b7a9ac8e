"""Use a bad index in iterations of a hot loop; print the last good result and the error."""

import gt

x, at = gt.arange(8), gt.tensor([1, 2], dtype="int64")
for step in range(40):
    at = at + (8 if step == 30 else 0)
    y = x * 2
    z = y.index_select(0, at)  # the line
    if step == 29:
        good = z + 0
print(good.tolist())
try:
    print(z.tolist())
except gt.WorkerError as error:
    print(error)
print((gt.ones(2) + 1).tolist())
