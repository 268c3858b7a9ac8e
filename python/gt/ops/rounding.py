"""Composite rounding operations."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt.ops.registry import operation


@operation(in_place=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to the nearest number with the given number of decimals, halves to even.

    Args:
        input: the tensor.
        decimals: the number of decimal places to keep; -2 rounds to hundreds.

    >>> gt.round(gt.tensor([0.5, 1.27]), decimals=1)
    tensor([0.5, 1.3], dtype=float32)
    """
    if decimals == 0:
        return primitives.round(input)
    if not input.dtype.is_floating_point:
        raise TypeError(f"round: decimals are for floats, not for {input.dtype.name}")
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return primitives.round(input * scale) / scale
    return primitives.round(input / scale) * scale


@operation(in_place=True)
def frac(input: Tensor) -> Tensor:
    """Return the fractional part, with the sign of the number: x - trunc(x).

    >>> gt.frac(gt.tensor([1.5, -2.5]))
    tensor([ 0.5, -0.5], dtype=float32)
    """
    if not input.dtype.is_floating_point:
        raise TypeError(f"frac: dtype is {input.dtype.name}, expected floats")
    return input - gt.trunc(input)
