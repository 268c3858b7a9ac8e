"""Send and fetch a large array, compute, and list the workers. Argument: the server's address."""

import sys

import gt
import numpy as np

gt.connect(sys.argv[1])
big = np.random.default_rng(0).normal(size=(3000, 1000)).astype("float32")
t = gt.from_numpy(big)
assert (t.numpy() == big).all(), "by shared memory"
assert abs((t * 2).sum().item() - 2 * big.sum(dtype="float64")) < 1
print((gt.ones(3) + 1).tolist(), gt.debug.get_worker_stats().keys() == {"w0", "w1"})
