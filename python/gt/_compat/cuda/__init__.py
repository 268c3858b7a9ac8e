"""`torch.cuda` for PyTorch programs: there are no GPUs to choose, as the dispatcher chooses."""

import contextlib
from typing import Any

from gt._absent import absent_names
from gt._device import check_index
from gt._gt import OutOfMemoryError
from gt._legacy import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from gt._paths import add_modules
from gt._public import show_callers
from gt.accelerator import synchronize
from gt.random import manual_seed as _manual_seed
from gt.random import seed as _seed

from . import amp

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "amp",
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_rng_state_all",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed_all",
    "set_rng_state_all",
    "set_device",
    "synchronize",
]


def manual_seed(seed: int) -> None:
    """Set the seed of this thread's session, as `gt.manual_seed`."""
    _manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Set the seed of this thread's session, as `gt.manual_seed`: it applies to all workers."""
    _manual_seed(seed)


def is_available() -> bool:
    """Return False: there is no GPU to choose. Programs then choose "cpu", which has no effect."""
    return False


def device_count() -> int:
    """Return the number of GPUs to choose from: 0."""
    return 0


def current_device() -> int:
    """Return the index of the current GPU: 0, as if there were one."""
    return 0


def set_device(device: Any) -> None:
    """Warn of a device that does not exist; the dispatcher decides where to compute."""
    check_index(device)


def empty_cache() -> None:
    """Do nothing: workers make the memory of freed tensors available to other sessions."""


class device(contextlib.nullcontext[None]):
    """A `with` block without effect: the dispatcher decides where to compute.

    Args:
        device: the GPU that PyTorch would compute with.
    """

    def __init__(self, device: Any):
        super().__init__()
        if device is not None:
            check_index(device)


def is_initialized() -> bool:
    """Return False: no GPU was chosen."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: there is no GPU to choose. Workers do compute with bfloat16."""
    return False


def memory_allocated(device: Any = None) -> int:
    """Return 0, as PyTorch without GPUs. `gt.debug.get_worker_stats()` has the bytes of workers."""
    return 0


#: These return 0 as well.
max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: no GPU memory is counted."""


def ipc_collect() -> None:
    """Do nothing: no memory is shared with other processes."""


def seed_all() -> None:
    """Set a random seed in this thread's session."""
    _seed()


def get_rng_state_all() -> list[Any]:
    """Return the generator states of all GPUs: an empty list."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Accept an empty list of generator states, as there are no GPUs to choose."""
    if list(new_states):
        raise RuntimeError(
            "set_rng_state_all: got states, but there are no GPUs to choose\n"
            "  hint: gt.set_rng_state(...) applies to all workers"
        )


globals().update(
    absent_names(
        __name__,
        "CUDAGraph Event ExternalStream Stream default_stream get_device_capability "
        "get_device_name get_device_properties graph mem_get_info",
        "check gt.cuda.is_available() first: there are no GPUs to choose, only workers have GPUs",
    )
)
add_modules(__name__, {"memory": __name__, "random": __name__})


def __getattr__(name: str) -> Any:
    if name == "nvtx":
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"gt.cuda has no '{name}': there are no GPUs to choose, only workers have GPUs\n"
        "  hint: check gt.cuda.is_available() first"
    )


show_callers(globals())
