"""The parts of PyTorch's `torch.utils` that GT has."""

# Whole packages first: two threads that import a package's modules in another order would meet
# one that is half imported.
import gt.nn
import gt.optim  # noqa: F401

from . import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
