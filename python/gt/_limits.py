"""What numbers a dtype can hold: `gt.finfo` and `gt.iinfo`."""

from __future__ import annotations

from typing import Any

from gt._gt import parse_dtype

#: The bits of the exponent and of the fraction of each float dtype.
_FLOATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
#: What the parts of a complex number are.
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


class finfo:
    """The limits of a float dtype; of a complex one, those of its parts.

    Args:
        type: the dtype; float32 where none is given.

    >>> gt.finfo(gt.float16).max
    65504.0
    """

    def __init__(self, type: Any = "float32"):
        name = parse_dtype(type).name
        name = _PARTS.get(name, name)
        if name not in _FLOATS:
            raise TypeError(f"finfo: {name} is no float dtype\n  hint: gt.iinfo(gt.{name})")
        exponent, fraction = _FLOATS[name]
        highest = 2 ** (exponent - 1) - 1
        #: The name of the dtype.
        self.dtype = name
        #: How many bits a number takes.
        self.bits = 1 + exponent + fraction
        #: How far the next number above 1 is from it.
        self.eps = 2.0**-fraction
        #: The largest number.
        self.max = (2 - self.eps) * 2.0**highest
        #: The smallest number: the largest one with a minus.
        self.min = -self.max
        #: The smallest positive number with all bits of the fraction.
        self.smallest_normal = self.tiny = 2.0 ** (1 - highest)
        #: The last decimal place that is right of any number near 1.
        self.resolution = 10.0 ** -int(fraction * 0.30103)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype.

    Args:
        type: the dtype.

    >>> gt.iinfo(gt.int8).min, gt.iinfo(gt.int8).max
    (-128, 127)
    """

    def __init__(self, type: Any):
        name = parse_dtype(type).name
        signed = name.startswith("int")
        if not signed and not name.startswith("uint"):
            raise TypeError(f"iinfo: {name} is no integer dtype\n  hint: gt.finfo(gt.{name})")
        #: The name of the dtype.
        self.dtype = name
        #: How many bits a number takes.
        self.bits = 8 * parse_dtype(type).itemsize
        #: The smallest number.
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        #: The largest number.
        self.max = 2 ** (self.bits - signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
