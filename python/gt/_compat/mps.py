"""`torch.mps` for PyTorch programs: there is no GPU of a Mac to choose."""

from __future__ import annotations

from gt._gt import synchronize
from gt._public import show_callers
from gt.random import manual_seed

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "is_available",
    "manual_seed",
    "synchronize",
]


def is_available() -> bool:
    """Return False: there is no GPU to choose."""
    return False


def device_count() -> int:
    """Return the number of GPUs to choose from: 0."""
    return 0


def empty_cache() -> None:
    """Do nothing: workers make the memory of freed tensors available to other sessions."""


def current_allocated_memory() -> int:
    """Return 0: no GPU memory is counted."""
    return 0


driver_allocated_memory = current_allocated_memory


show_callers(globals())
