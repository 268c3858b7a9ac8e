"""The parts of PyTorch's `torch.utils` that GT has."""

from . import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
