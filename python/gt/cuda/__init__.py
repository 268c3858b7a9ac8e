"""What PyTorch's programs ask of GPUs: there are none here, which GPU computes is GT's matter."""

from gt._gt import synchronize
from gt.cuda import amp
from gt.random import manual_seed as _manual_seed

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "set_device",
    "synchronize",
]


def manual_seed(seed: int) -> None:
    """Start the random numbers of this thread's session anew, as `gt.manual_seed`."""
    _manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Do the same: one seed is for all workers."""
    _manual_seed(seed)


def is_available() -> bool:
    """Say that there is no GPU to choose: programs then say "cpu", which changes nothing."""
    return False


def device_count() -> int:
    """Count the GPUs to choose from: none."""
    return 0


def current_device() -> int:
    """Give the number of the GPU that is chosen: 0, as if there were one."""
    return 0


def set_device(device: object) -> None:
    """Do nothing: where to compute is up to the dispatcher."""


def empty_cache() -> None:
    """Do nothing: memory is free for others when no tensor needs it."""
