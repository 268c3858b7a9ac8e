"""Sizes that are given as one number for all axes, or as one per axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gt._arguments import brief


def sizes(name: str, value: Any, count: int) -> tuple[int, ...]:
    """Return `per_axis` of an argument that has to be an integer or several of them.

    Raises:
        TypeError: it is something else.
    """
    found = per_axis(value, count)
    if isinstance(value, str) or not all(hasattr(one, "__index__") for one in found):
        raise TypeError(f"{name} is {brief(value)}, expected an int, or a tuple of ints")
    return found


def per_axis(value: Any, count: int) -> tuple[Any, ...]:
    """Return a number repeated `count` times, or an iterable of numbers as a tuple.

    >>> per_axis(3, 2), per_axis([1, 2], 2)
    ((3, 3), (1, 2))
    """
    return tuple(value) if isinstance(value, Iterable) else (value,) * count
