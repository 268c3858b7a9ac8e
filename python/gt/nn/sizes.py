"""Sizes that are one number for all axes, or one for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def per_axis(value: Any, count: int) -> tuple:
    """Give `count` times the same number, or the numbers that are given.

    >>> per_axis(3, 2), per_axis([1, 2], 2)
    ((3, 3), (1, 2))
    """
    return tuple(value) if isinstance(value, Iterable) else (value,) * count
