"""The values that all clusters take, checked."""

from __future__ import annotations

import re

#: What a name may be: lists of SLURM have commas, and Ray's nodes have folders of this name.
_NAME = re.compile(r"(?=[^\W_])[^,/\\\x00-\x1f\x7f]{1,64}")


def checked_size(size: int, unit: str) -> int:
    """Return a number of workers; it is checked."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"the number of {unit}s must be an int, not {type(size).__name__}")
    if size < 0:
        raise ValueError(f"the number of {unit}s is {size}, expected 0 or more")
    return size


def checked_name(name: str) -> str:
    """Return the name of a cluster; it is checked.

    Raises:
        ValueError: schedulers and file systems would take it for something else.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"the name is {name!r}, expected 1 to 64 characters, the first a letter or a digit, "
            "and none a comma, a slash or a line break"
        )
    return name
