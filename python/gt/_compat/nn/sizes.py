"""Sizes that are given as one number for all axes, or as one per axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def per_axis(value: Any, count: int) -> tuple[Any, ...]:
    """Return a number repeated `count` times, or an iterable of numbers as a tuple.

    >>> per_axis(3, 2), per_axis([1, 2], 2)
    ((3, 3), (1, 2))
    """
    return tuple(value) if isinstance(value, Iterable) else (value,) * count
