"""Halve the batch until it fits in a worker's memory; print the batches that did not, and the sum.

The argument selects GT's tensors, or PyTorch's of the device `cluster`.
"""

import pickle
import sys

import gt

if sys.argv[1] == "torch":
    import gt.torch
    import torch as framework

    options = {"device": "cluster"}
else:
    framework, options = gt, {}


def loss(batch):
    """Return the sum of a batch of ones, which takes more memory than the batch."""
    x = framework.ones(batch, 1_000_000, **options)
    return ((x * 2).relu() + x).sum().item()


batch = 64
while True:
    try:
        total = loss(batch)
        break
    except framework.OutOfMemoryError as error:
        assert isinstance(error, gt.OutOfMemoryError) and isinstance(error, gt.WorkerError)
        assert "out of memory" in str(error)
        assert type(pickle.loads(pickle.dumps(error))) is type(error)
        print("no memory for", batch)
        batch //= 2
print(total / batch)
