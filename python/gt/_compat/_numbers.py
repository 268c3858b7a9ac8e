"""Formatting of numbers in NumPy's default style, without NumPy.

With it, the first printed result of a program does not wait for the import of NumPy, which takes
longer than that of GT. NumPy still formats complex numbers, float16, scientific notation, nan and
inf.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

#: The largest number of digits after the decimal point.
DIGITS = 8
#: The `struct` codes of float dtypes; bfloat16 is printed as float32.
_FLOATS = {"bfloat16": "f", "float32": "f", "float64": "d"}
#: The values from which on NumPy may use scientific notation; its versions differ.
_LIMITS = {"f": 1e6, "d": 1e8}


def array_text(
    values: Any, shape: tuple[int, ...], dtype: str, prefix: str, width: int = 75
) -> str | None:
    """Return the text of nested lists of numbers, or None for what is left to NumPy.

    Args:
        values: the nested lists, or one number.
        shape: the lengths of the lists.
        dtype: the name of the numbers' dtype.
        prefix: the text that precedes it, by whose length further lines are indented.
        width: the longest length of a line.
    """
    flat = [values]
    for _ in shape:
        flat = [value for part in flat for value in part]
    if dtype == "bool":
        words: list[str] | None = [str(at).rjust(5 if shape and at else 0) for at in flat]
    elif dtype in _FLOATS:
        words = _float_words(flat, _FLOATS[dtype])
    elif flat and isinstance(flat[0], int):
        longest = max(len(str(value)) for value in flat)
        words = [str(value).rjust(longest) for value in flat]
    else:
        return None
    if not words:
        return None
    return _nested(iter(words), shape, " " * (len(prefix) + 1), width)


def _float_words(values: list[float], code: str) -> list[str] | None:
    """Return floats in positional notation, aligned at the decimal point.

    None where NumPy prints them differently, or may.
    """
    sizes = [abs(value) for value in values if value != 0]
    if not all(map(math.isfinite, sizes)):
        return None
    if sizes:
        least, most = min(sizes), max(sizes)
        if most >= _LIMITS[code] or least < 1e-4 or _rounded(most / least, code) > 1000:
            return None
    parts = [_digits(value, code).split(".") for value in values]
    left = max((len(whole) for whole, _ in parts), default=0)
    right = max((len(fraction) for _, fraction in parts), default=0)
    return [f"{whole.rjust(left)}.{fraction.ljust(right)}" for whole, fraction in parts]


def _digits(value: float, code: str) -> str:
    """Return the shortest digits that identify a float, with at most `DIGITS` after the point."""
    if code == "d":
        short = value
    else:
        tries = (float(f"{value:.{digits}g}") for digits in range(1, 10))
        short = next(short for short in tries if _rounded(short, code) == value)
    text = f"{short:.{DIGITS * 2}f}" if abs(short) < 1e-4 else repr(short)
    whole, _, fraction = text.partition(".")
    if len(fraction) > DIGITS:
        whole, _, fraction = f"{value:.{DIGITS}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0')}"


def _rounded(value: float, code: str) -> float:
    """Return a number rounded to the dtype of this `struct` code."""
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.inf


def _nested(words: Iterator[str], shape: tuple[int, ...], indent: str, width: int) -> str:
    """Return words in nested brackets, with as many on each line as fit."""
    if not shape:
        return next(words)
    if len(shape) > 1:
        inner = [_nested(words, shape[1:], indent + " ", width - 1) for _ in range(shape[0])]
        return "[" + ("," + "\n" * (len(shape) - 1) + indent).join(inner) + "]"
    lines, line = [], indent
    for place in range(shape[0]):
        word = next(words)
        if len(line) + len(word) > width - 1 and len(line) > len(indent):
            lines.append(line.rstrip())
            line = indent
        line += word + (", " if place < shape[0] - 1 else "")
    return "[" + "\n".join([*lines, line])[len(indent) :] + "]"
