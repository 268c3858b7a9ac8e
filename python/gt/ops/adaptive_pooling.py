"""Pooling to a given size, in windows that divide an axis evenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, primitives
from gt.ops.annotations import Size
from gt.ops.maxima import largest, with_indices
from gt.ops.registry import function
from gt.ops.sliding import along, at_least, check_spatial, over, wide

NN = "gt.nn.functional"


@function
def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Average windows over the last axis, with `output_size` windows.

    Window i reaches from floor(i * length / size) up to ceil((i + 1) * length / size).

    >>> gt.nn.functional.adaptive_avg_pool1d(gt.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[2., 6.]], dtype=float32)
    """
    return _average("adaptive_avg_pool1d", 1, input, output_size)


@function(namespace=NN)
def adaptive_avg_pool2d(input: Tensor, output_size: Size | None) -> Tensor:
    """Average windows over the last two axes to a given size; None keeps an axis as long.

    >>> gt.nn.functional.adaptive_avg_pool2d(gt.ones(1, 5, 7), (2, None)).shape
    (1, 2, 7)
    """
    return _average("adaptive_avg_pool2d", 2, input, output_size)


@function(namespace=NN)
def adaptive_avg_pool3d(input: Tensor, output_size: Size | None) -> Tensor:
    """Average windows over the last three axes to a given size; None keeps an axis as long.

    >>> gt.nn.functional.adaptive_avg_pool3d(gt.ones(1, 5, 7, 4), 2).shape
    (1, 2, 2, 2)
    """
    return _average("adaptive_avg_pool3d", 3, input, output_size)


def _average(name: str, axes: int, input: Tensor, output_size: Any) -> Tensor:
    """Average all axes at once where windows have one length, else one axis after the other."""
    if not input.dtype.is_floating_point:
        raise TypeError(f"{name}: input must hold floats, this is {input.dtype.name}")
    sizes, result = _sizes(name, axes, input, output_size), wide(input)
    if kernel := _even(input.shape[-axes:], sizes):
        split = [length for pair in zip(sizes, kernel, strict=True) for length in pair]
        windows = result.reshape(*input.shape[:-axes], *split)
        return windows.mean(tuple(range(1 - 2 * axes, 0, 2)))._cast(input.dtype)
    for axis, number in zip(range(-axes, 0), sizes, strict=True):
        at, begin, end = _shares(input, input.shape[axis], number)
        values = gt.where(over(at < end, axis), along(result, axis, at.minimum(end - 1)), 0)
        result = values.sum(axis - 1) / over(end - begin, axis)
    return result._cast(input.dtype)


@function
def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: bool = False) -> Any:
    """Return the largest value of windows over the last axis, as in `adaptive_avg_pool1d`.

    >>> gt.nn.functional.adaptive_max_pool1d(gt.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[3., 7.]], dtype=float32)
    """
    return _largest("adaptive_max_pool1d", 1, input, output_size, return_indices)


@function(namespace=NN)
def adaptive_max_pool2d(
    input: Tensor, output_size: Size | None, return_indices: bool = False
) -> Any:
    """Return the largest value of windows over the last two axes, as in `adaptive_avg_pool2d`.

    With `return_indices` the result is `(values, indices)`; indices count in the last two axes,
    flattened.

    >>> gt.nn.functional.adaptive_max_pool2d(gt.ones(1, 5, 7), (2, None)).shape
    (1, 2, 7)
    """
    return _largest("adaptive_max_pool2d", 2, input, output_size, return_indices)


@function(namespace=NN)
def adaptive_max_pool3d(
    input: Tensor, output_size: Size | None, return_indices: bool = False
) -> Any:
    """Return the largest value of windows over the last three axes; as `adaptive_max_pool2d`.

    >>> gt.nn.functional.adaptive_max_pool3d(gt.ones(1, 5, 7, 4), 2).shape
    (1, 2, 2, 2)
    """
    return _largest("adaptive_max_pool3d", 3, input, output_size, return_indices)


def _largest(name: str, axes: int, input: Tensor, output_size: Any, indices: bool) -> Any:
    """Return the largest value of each window; a shorter window repeats its last value."""
    sizes = _sizes(name, axes, input, output_size)
    if kernel := _even(input.shape[-axes:], sizes):
        none, single = (0,) * axes, (1,) * axes
        values, index = primitives.max_pool(input, kernel, kernel, none, single, False)
        return (values, index) if indices else values
    shares = [_shares(input, *one) for one in zip(input.shape[-axes:], sizes, strict=True)]
    values, index = largest(input, [at.minimum(end - 1) for at, _, end in shares])
    return (values, index) if indices else values


def _sizes(name: str, axes: int, input: Tensor, output_size: Any) -> list[int]:
    """Return the number of windows along each axis."""
    check_spatial(name, input, axes)
    given = output_size if isinstance(output_size, tuple | list) else [output_size] * axes
    if len(given) != axes:
        raise ValueError(f"{name}: output_size is {output_size}, expected a number or {axes}")
    lengths = input.shape[-axes:]
    sizes = [n if size is None else size for n, size in zip(lengths, given, strict=True)]
    at_least(name, "output_size", sizes, 0)
    at_least(name, "the length of spatial axes", lengths, 1)
    return sizes


def _even(lengths: Sequence[int], sizes: Sequence[int]) -> list[int] | None:
    """Return the window length along each axis where it divides without remainder, else None."""
    if any(size == 0 or length % size for length, size in zip(lengths, sizes, strict=True)):
        return None
    return [length // size for length, size in zip(lengths, sizes, strict=True)]


def _shares(beside: Tensor, length: int, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return positions in the windows along an axis, and the begin and end of each window.

    The positions are [kernel, number]; those of a shorter window continue past its end.
    """
    each = arange_beside(beside, number)
    begin, end = each * length // max(number, 1), -(-(each + 1) * length // max(number, 1))
    longest = 1 if number == 0 else length // number + (2 if length % number else 0)
    return arange_beside(beside, longest).unsqueeze(-1) + begin, begin, end


for _pooling in (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d):
    with_indices(_pooling)
