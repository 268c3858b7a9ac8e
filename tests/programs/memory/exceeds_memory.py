"""Exceed a worker's memory of 100 MB; print the error, and a result after a tensor is freed."""

import gt

xs = [gt.ones(10_000_000) for _ in range(2)]
print(xs[0][0].item())
try:
    gt.ones(10_000_000)[0].item()
except gt.WorkerError as error:
    print(error)
xs.pop()
print(gt.ones(10_000_000)[0].item())
