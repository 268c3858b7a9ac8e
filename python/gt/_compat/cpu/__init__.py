"""`torch.cpu` for PyTorch programs; the dispatcher decides where to compute."""

from gt._public import show_callers
from gt.accelerator import synchronize

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return the number of CPU devices to choose from: 1, as in PyTorch."""
    return 1


def current_device() -> str:
    """Return the name of the current device, "cpu"."""
    return "cpu"


def set_device(device: object) -> None:
    """Do nothing: the dispatcher decides where to compute."""


show_callers(globals())
