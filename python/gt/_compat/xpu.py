"""`torch.xpu` for PyTorch programs: there is no GPU of Intel's to choose."""

from __future__ import annotations

from typing import Any

from gt._device import check_index
from gt._public import show_callers
from gt.accelerator import synchronize
from gt.random import manual_seed

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Return False: there is no GPU to choose."""
    return False


def device_count() -> int:
    """Return the number of GPUs to choose from: 0."""
    return 0


def set_device(device: Any) -> None:
    """Warn of a device that does not exist; the dispatcher decides where to compute."""
    check_index(device)


def empty_cache() -> None:
    """Do nothing: workers make the memory of freed tensors available to other sessions."""


manual_seed_all = manual_seed


show_callers(globals())
