"""The error of a conversion, and the formatting and parsing of sizes and counts."""

from __future__ import annotations

import re

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40, "B": 1}


class ConvertError(RuntimeError):
    """A folder cannot be converted; the message says what is wrong, where, and what to do."""

    __module__ = "gt.convert"


def parse_size(size: int | str) -> int:
    """Return the number of bytes of a size such as `"5GB"`, `"200MiB"` or `1000`.

    Raises:
        ConvertError: the size is invalid or not positive.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(size).strip())
    unit = _UNITS.get(match[2].upper()) if match else None
    count = 0 if match is None or unit is None else int(float(match[1]) * unit)
    if count < 1:
        raise ConvertError(
            f"max_shard_size is {size!r}, expected a number of bytes or one with a unit, such as "
            "5GB, 200MB or 1GiB"
        )
    return count


def counted(count: int, what: str) -> str:
    """Return a count with a noun in singular or plural: `1 tensor`, `2 tensors`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
