"""The numeric limits of dtypes: `gt.finfo` and `gt.iinfo`."""

from __future__ import annotations

from typing import Any

from gt._gt import parse_dtype

#: The bits of the exponent and of the fraction of each float dtype.
_FLOATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
#: The dtype of the real and imaginary parts of each complex dtype.
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


class finfo:
    """The limits of a float dtype, or of the real and imaginary parts of a complex dtype.

    Args:
        type: the dtype; float32 by default.

    >>> gt.finfo(gt.float16).max
    65504.0
    """

    def __init__(self, type: Any = "float32"):
        name = parse_dtype(type).name
        name = _PARTS.get(name, name)
        if name not in _FLOATS:
            raise TypeError(f"finfo: {name} is not a float dtype\n  hint: gt.iinfo(gt.{name})")
        exponent, fraction = _FLOATS[name]
        highest = 2 ** (exponent - 1) - 1
        #: The name of the dtype.
        self.dtype = name
        #: The number of bits of a number.
        self.bits = 1 + exponent + fraction
        #: The difference between 1 and the next larger number.
        self.eps = 2.0**-fraction
        #: The largest number.
        self.max = (2 - self.eps) * 2.0**highest
        #: The smallest number, which is `-max`.
        self.min = -self.max
        #: The smallest positive normal number.
        self.smallest_normal = self.tiny = 2.0 ** (1 - highest)
        #: The approximate decimal resolution: 10 to the power of minus the number of exact digits.
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
            raise TypeError(f"iinfo: {name} is not an integer dtype\n  hint: gt.finfo(gt.{name})")
        #: The name of the dtype.
        self.dtype = name
        #: The number of bits of a number.
        self.bits = 8 * parse_dtype(type).itemsize
        #: The smallest number.
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        #: The largest number.
        self.max = 2 ** (self.bits - signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
