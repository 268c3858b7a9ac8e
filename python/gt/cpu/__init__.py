"""What PyTorch's programs ask of CPUs; where to compute is up to the dispatcher."""

from gt._gt import synchronize
from gt.cpu import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """Say that there are CPUs."""
    return True


def device_count() -> int:
    """Count the CPU devices to choose from: one, as PyTorch does."""
    return 1


def current_device() -> str:
    """Name the device that is chosen."""
    return "cpu"


def set_device(device: object) -> None:
    """Do nothing: where to compute is up to the dispatcher."""
