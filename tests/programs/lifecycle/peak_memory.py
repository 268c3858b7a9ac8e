"""Copy 200 MB to a worker and back; print by how much each way raises the peak of the memory."""

import resource
import sys

import gt
import numpy as np

UNIT = 1 if sys.platform == "darwin" else 1024


def peak():
    """Return the peak of this process's memory, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


array = np.ones(50_000_000, "float32")
gt.ones(1).item()  # starts the engine
start = peak()
x = gt.from_numpy(array)
gt.synchronize()
there = peak()
assert x.numpy().sum() == array.size
print(there - start, peak() - there)
