"""`torch.accelerator` for PyTorch programs: there is no accelerator to choose on this machine.

Programs then choose "cpu", which has no effect: the dispatcher decides which workers compute.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gt._device import check_index
from gt._gt import synchronize as _synchronize
from gt._public import show_callers

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "empty_cache",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]


def is_available() -> bool:
    """Return False: there is no accelerator to choose."""
    return False


def device_count() -> int:
    """Return the number of accelerators to choose from: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """Return None: there is no accelerator to choose."""


def current_device_index() -> int:
    """Return the index of the current accelerator: 0, as if there were one."""
    return 0


def set_device_index(device: Any) -> None:
    """Warn of a device that does not exist; the dispatcher decides where to compute."""
    check_index(device)


def synchronize(device: Any = None) -> None:
    """Wait until the workers have computed all that this thread's session has issued."""
    if device is not None:
        check_index(device)
    _synchronize()


def empty_cache() -> None:
    """Do nothing: workers make the memory of freed tensors available to other sessions."""


current_device_idx, set_device_idx = current_device_index, set_device_index


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"gt.accelerator has no '{name}': there are no accelerators to choose, only workers have "
        "them\n  hint: check gt.accelerator.is_available() first"
    )


show_callers(globals())
