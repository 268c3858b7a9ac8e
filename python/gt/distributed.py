"""What programs ask before they talk to other processes: one process drives all workers here.

So there are no ranks, and programs take the way of a single process. `gt.signal` says how tensors
are cut over workers.
"""

from typing import NoReturn

__all__ = ["is_available", "is_initialized"]


def is_available() -> bool:
    """Say that there are no groups of processes."""
    return False


def is_initialized() -> bool:
    """Say that this process is in no group."""
    return False


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"gt.distributed has no '{name}': one process drives all workers\n"
        "  hint: ask gt.distributed.is_available() first; gt.signal cuts tensors over workers"
    )
