"""Redistribute and reduce tensors of many dtypes; print whether the results are right."""

import gt
from rows import rows

gt.register_config("columns", gt.SignalConfig(gt.ShardConfig(axis=1)))
nan = float("nan")
for dtype in (gt.bool, gt.uint8, gt.int16, gt.int64, gt.float16, gt.float64):
    data = [[i * j % 7 for j in range(3)] for i in range(5)]
    x = rows(lambda data=data, dtype=dtype: gt.tensor(data, dtype=dtype))
    with gt.signal.context("columns"):
        y = gt.cat([x, x])
    most = [max(column) for column in zip(*x.tolist(), strict=True)]
    print(y.tolist() == x.tolist() * 2, x.amax(dim=0).tolist() == most)
x = rows(lambda: gt.tensor([[1.0, nan], [2.0, 3.0], [5.0, 4.0]]))
print(x.amax(dim=0).tolist(), x.sum(dim=0).tolist())
