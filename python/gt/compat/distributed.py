"""Queries of programs that can also run in several processes: one process drives all workers here.

There are no ranks, so programs run as in a single process. `gt.signal` shards tensors over workers.
"""

from typing import NoReturn

from gt._public import show_callers

__all__ = ["is_available", "is_initialized"]


def is_available() -> bool:
    """Return False: there are no groups of processes."""
    return False


def is_initialized() -> bool:
    """Return False: this process is in no group."""
    return False


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"gt.distributed has no '{name}': one process drives all workers\n"
        "  hint: check gt.distributed.is_available() first; gt.signal shards tensors over workers"
    )


show_callers(globals())
