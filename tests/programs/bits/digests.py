"""Seed the random numbers and print digests of tensors: the start of the programs about bits."""

import hashlib
import os
import sys

import gt

# Engines count the processors when the first session starts.
if "--one-processor" in sys.argv and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])

gt.manual_seed(0)


def show(name, *tensors):
    """Print a name and a digest of the values of tensors."""
    digest = hashlib.sha256()
    for tensor in tensors:
        tensor = tensor.detach()
        tensor = tensor.float() if tensor.dtype == gt.bfloat16 else tensor
        digest.update(tensor.contiguous().numpy().tobytes())
    print(name, digest.hexdigest()[:12])
