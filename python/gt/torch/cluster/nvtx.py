"""`torch.cluster.nvtx`: named ranges, which `torch.profiler` records."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from torch.autograd.profiler import record_function

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_pushed: list[record_function] = []
_started: dict[int, record_function] = {}
_numbers = itertools.count(1)


def range_push(msg: str) -> int:
    """Begin a range inside the current one, and return its depth, from 0."""
    _pushed.append(record_function(msg))
    _pushed[-1].__enter__()
    return len(_pushed) - 1


def range_pop() -> int:
    """End the innermost range, and return its depth; -1 without one."""
    if not _pushed:
        return -1
    _pushed.pop().__exit__(None, None, None)
    return len(_pushed)


def range_start(msg: str) -> int:
    """Begin a range that may overlap others, and return its number."""
    number = next(_numbers)
    _started[number] = record_function(msg)
    _started[number].__enter__()
    return number


def range_end(range_id: int) -> None:
    """End the range of a number that `range_start` returned."""
    _started.pop(range_id).__exit__(None, None, None)


def mark(msg: str) -> None:
    """Record a moment, as a range without duration."""
    with record_function(msg):
        pass


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Record the block as a range; the arguments are for the format of its name."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
