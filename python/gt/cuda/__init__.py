"""What PyTorch's programs ask of GPUs: there are none here, which GPU computes is GT's matter."""

from typing import Any, NoReturn

from gt._gt import synchronize
from gt.cuda import amp
from gt.random import manual_seed as _manual_seed
from gt.random import seed as _seed

__all__ = [
    "amp",
    "current_device",
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


def is_initialized() -> bool:
    """Say that there is no GPU that was chosen."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Say that no GPU here computes with bfloat16; workers do."""
    return False


def memory_allocated(device: Any = None) -> int:
    """Give 0, as PyTorch without GPUs: `gt.debug.get_worker_stats()` has the bytes of workers."""
    return 0


#: The same.
max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: there is no memory of a GPU to count."""


def ipc_collect() -> None:
    """Do nothing: no memory is shared with other processes."""


def seed_all() -> None:
    """Start the random numbers of this thread's session from a seed that nobody knows."""
    _seed()


def get_rng_state_all() -> list:
    """Give the states of the generators of all GPUs: none."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Take the states of the generators of all GPUs: of none."""
    if list(new_states):
        raise RuntimeError(
            "set_rng_state_all: states are given, but there are no GPUs to choose\n"
            "  hint: gt.set_rng_state(...) is for all workers"
        )


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"gt.cuda has no '{name}': there are no GPUs to choose, workers have them\n"
        "  hint: ask gt.cuda.is_available() first"
    )
