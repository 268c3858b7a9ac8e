"""Numbers as text, as NumPy writes them by default.

The first printed result of a program need not wait for the import of NumPy, which takes longer than
that of GT. What is not here (complex numbers, float16, powers of ten, nan and inf) is left to it.
"""

from __future__ import annotations

import math
import struct

#: How many digits behind the point are written at most.
DIGITS = 8
#: How `struct` names the dtypes of floats. NumPy gets bfloat16 as float32.
_FLOATS = {"bfloat16": "f", "float32": "f", "float64": "d"}
#: From where on NumPy may write powers of ten; its versions differ.
_LIMITS = {"f": 1e6, "d": 1e8}


def array_text(
    values, shape: tuple[int, ...], dtype: str, prefix: str, width: int = 75
) -> str | None:
    """Give the text of nested lists of numbers; `None` for what is left to NumPy.

    Args:
        values: the nested lists, or one number.
        shape: their lengths.
        dtype: the name of the numbers' dtype.
        prefix: what stands in front of the text: further lines are indented as much.
        width: how long a line may be.
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
    """Give floats in digits, with their points below each other; `None` where NumPy does else."""
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
    """Give the fewest digits that tell a float from its neighbours, with a fraction of `DIGITS`."""
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
    """Give a number as the dtype of this code holds it."""
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.inf


def _nested(words, shape: tuple[int, ...], indent: str, width: int) -> str:
    """Give words in brackets, with as many on a line as fit."""
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
