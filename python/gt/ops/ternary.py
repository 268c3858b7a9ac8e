"""Elementwise operations of three tensors."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Number
from gt.ops.precision import common_dtype
from gt.ops.registry import operation


@operation(in_place=True, autocast="widest")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return `input + value * tensor1 * tensor2`, broadcast.

    >>> gt.addcmul(gt.tensor([1.0]), gt.tensor([2.0]), gt.tensor([3.0]), value=10)
    tensor([61.], dtype=float32)
    """
    common = common_dtype(input, tensor1, tensor2)
    if common == gt.bool:
        raise TypeError("addcmul: expected numbers, not bool")
    if not (common.is_floating_point or common.is_complex) and isinstance(value, float):
        raise TypeError(f"addcmul: value must be an int for dtype {common.name}, not {value}")
    base, one, other = _computed_in(common, input, tensor1, tensor2)
    return (base + (one if value == 1 else one * value) * other)._cast(common)


@operation(in_place=True, autocast="widest")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return `input + value * tensor1 / tensor2`, broadcast; one of the last two must hold floats.

    >>> gt.addcdiv(gt.tensor([1.0]), gt.tensor([3.0]), gt.tensor([2.0]))
    tensor([2.5], dtype=float32)
    """
    quotient = common_dtype(tensor1, tensor2)
    if not (quotient.is_floating_point or quotient.is_complex):
        raise TypeError(
            "addcdiv: tensor1 or tensor2 must hold floats\n"
            "  hint: input + value * gt.div(tensor1, tensor2), or with rounding_mode='trunc'"
        )
    common = common_dtype(input, tensor1, tensor2)
    base, one, other = _computed_in(common, input, tensor1, tensor2)
    return (base + (one if value == 1 else one * value) / other)._cast(common)


@operation(in_place=True)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Interpolate linearly: `input + weight * (end - input)`, broadcast.

    For a weight of 0.5 or more, it is computed from the end, so that weight 1 is exactly the end.

    >>> gt.lerp(gt.tensor([0.0]), gt.tensor([10.0]), 0.3)
    tensor([3.], dtype=float32)
    """
    common = common_dtype(input, end, weight)
    if input.dtype != end.dtype:
        raise TypeError(f"lerp: end must be {input.dtype.name} as input is, not {end.dtype.name}")
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise TypeError(f"lerp: expected floats, not {input.dtype.name}\n  hint: input.float()")
    start, end = _computed_in(common, input, end)
    step = end - start
    if not isinstance(weight, Tensor):
        result = start + step * weight if abs(weight) < 0.5 else end - step * (1 - weight)
    else:
        (share,) = _computed_in(common, weight)
        nearer = share.abs() < 0.5
        result = primitives.where(nearer, start + share * step, end - step * (1 - share))
    return result._cast(common)


def _computed_in(common: gt.dtype, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast to the dtype of the computation: float32 for 16-bit floats."""
    half = common.is_floating_point and common.itemsize == 2
    return tuple(x._cast(gt.float32 if half else common) for x in tensors)
