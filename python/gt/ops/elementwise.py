"""Elementwise composites."""

from __future__ import annotations

import gt
from gt._gt import Tensor, element_of, primitives
from gt.ops.annotations import Number
from gt.ops.flat import flat
from gt.ops.precision import common_dtype
from gt.ops.registry import operation


@operation(in_place=True)
def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Add two tensors: `input + alpha * other`, broadcast; for bool, or.

    >>> gt.add(gt.tensor([1.0, 2.0]), gt.tensor([10.0, 20.0]), alpha=2)
    tensor([21., 42.], dtype=float32)
    """
    return primitives.add(input, _scaled("add", input, other, alpha))


def _scaled(
    name: str, input: Tensor | Number, other: Tensor | Number, alpha: Number
) -> Tensor | Number:
    if isinstance(alpha, int) and alpha == 1:
        return other

    def is_whole(operand: Tensor | Number) -> bool:
        if isinstance(operand, Tensor):
            return not (operand.is_floating_point() or operand.is_complex())
        return not isinstance(operand, float | complex)

    if is_whole(input) and is_whole(other) and isinstance(alpha, float | complex):
        raise TypeError(f"{name}: alpha must be an int for integers, not {alpha}")
    operands = [operand for operand in (input, other) if isinstance(operand, Tensor)]
    if isinstance(other, Tensor) and all(operand.dtype == gt.bool for operand in operands):
        return other & bool(alpha)
    return other * alpha


@operation(in_place=True, aliases=("subtract",))
def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Subtract: `input - alpha * other`, broadcast.

    >>> gt.sub(gt.tensor([1.0, 2.0]), 1)
    tensor([0., 1.], dtype=float32)
    """
    return primitives.sub(input, _scaled("sub", input, other, alpha))


@operation(in_place=True, aliases=("divide",))
def div(
    input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None = None
) -> Tensor:
    """Divide as floats, or round the quotient towards zero ("trunc") or down ("floor").

    Args:
        input: the dividend.
        other: the divisor; both broadcast.
        rounding_mode: None, "trunc" or "floor".

    >>> gt.div(gt.tensor([7.0, -7.0]), 2, rounding_mode="trunc")
    tensor([ 3., -3.], dtype=float32)
    """
    if rounding_mode is None:
        return primitives.div(input, other)
    if rounding_mode == "floor":
        return flat(primitives.floor_divide, input, other)
    if rounding_mode != "trunc":
        raise ValueError(
            f"div: rounding_mode is '{rounding_mode}', expected None, 'trunc' or 'floor'"
        )
    if common_dtype(input, other).is_floating_point:
        return flat(lambda a, b: gt.trunc(primitives.div(a, b)), input, other)
    # Floor division rounds negative integer quotients one too low where there is a remainder.
    down = primitives.floor_divide(input, other)
    return down + ((down < 0) & (primitives.remainder(input, other) != 0))


@operation(in_place=True)
def square(input: Tensor) -> Tensor:
    """Multiply each value with itself; bool counts as a number.

    >>> gt.square(gt.tensor([3.0]))
    tensor([9.], dtype=float32)
    """
    return input * input if input.dtype != gt.bool else input.long() * input


@operation
def isinf(input: Tensor) -> Tensor:
    """Return whether each value is infinite, positive or negative.

    >>> gt.isinf(gt.tensor([1.0, float("inf")]))
    tensor([False,  True], dtype=bool)
    """
    return _size(input) == float("inf")


@operation
def isfinite(input: Tensor) -> Tensor:
    """Return whether each value is finite: neither infinite nor NaN.

    >>> gt.isfinite(gt.tensor([1.0, float("nan")]))
    tensor([ True, False], dtype=bool)
    """
    return _size(input) < float("inf")


def _size(input: Tensor) -> Tensor:
    return input.abs() if input.dtype != gt.bool else input.long()


@operation(in_place=True)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Replace the values by `value` where the mask is True.

    >>> gt.masked_fill(gt.tensor([1.0, 2.0]), gt.tensor([True, False]), 0)
    tensor([0., 2.], dtype=float32)
    """
    value = element_of("masked_fill", value, input.dtype)
    return primitives.where(mask, value, input)._cast(input.dtype)


@operation(in_place=True, aliases=("clip",))
def clamp(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Tensor:
    """Limit the values to at least min and at most max.

    A limit that is a tensor receives the gradients of the values beyond it, and half of those of
    equal values. Where max is below min, the result is max.

    >>> gt.clamp(gt.tensor([-2.0, 0.5, 3.0]), min=-1, max=1)
    tensor([-1. ,  0.5,  1. ], dtype=float32)
    """
    if min is None and max is None:
        raise ValueError("clamp: give min, max or both")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        above = input if min is None else primitives.maximum(input, min)
        return above if max is None else primitives.minimum(above, max)
    if input.is_floating_point() or isinstance(min, float) or isinstance(max, float):
        low, high = float("-inf"), float("inf")
    else:
        low, high = -(2**63), 2**63 - 1
    return primitives.clamp(input, low if min is None else min, high if max is None else max)


@operation(in_place=True, autocast="float32")
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Smooth ReLU: log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold.

    >>> gt.softplus(gt.tensor([0.0]))
    tensor([0.6931472], dtype=float32)
    """
    if beta == 1 and threshold == 20:
        return primitives.softplus(input)
    smooth = primitives.softplus(input * beta) / beta
    return primitives.where(input * beta > threshold, input, smooth)
