"""Sliding windows over the last axes of a tensor."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, primitives
from gt.ops.sizes import filled


def per_axis(name: str, parameter: str, value: Any, axes: int) -> tuple[int, ...]:
    """Return an int for each axis, from one int for all axes or one for each."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    if len(values) not in (1, axes) or not all(hasattr(one, "__index__") for one in values):
        raise ValueError(f"{name}: {parameter} is {value}, expected an int or {axes} of them")
    values = tuple(operator.index(one) for one in values)
    return values * axes if len(values) == 1 else values


def stride_of(name: str, stride: Any, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """Return the stride for each axis; by default windows are side by side."""
    return kernel if stride in (None, (), []) else per_axis(name, "stride", stride, len(kernel))


def at_least(name: str, parameter: str, values: Sequence[int], lowest: int) -> None:
    """Raise if a number is below `lowest`."""
    if any(value < lowest for value in values):
        raise ValueError(f"{name}: {parameter} is {tuple(values)}, expected {lowest} or more each")


def check_spatial(name: str, input: Tensor, axes: int) -> None:
    """Raise unless a tensor has channels, the spatial axes and perhaps a batch axis."""
    if input.ndim not in (axes + 1, axes + 2):
        expected = ("channels", *("depth", "height", "width")[-axes:])
        raise ValueError(
            f"{name}: input has shape {input.shape}, expected ({', '.join(expected)}) or "
            f"({', '.join(('batch', *expected))})"
        )


def wide(input: Tensor) -> Tensor:
    """Return 16-bit floats as float32, so that sums are accurate."""
    return input.float() if input.dtype.is_floating_point and input.dtype.itemsize == 2 else input


def padded(input: Tensor, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Add zeros before and after each of the last axes; negative numbers remove values."""
    if not any(before or after for before, after in pairs):
        return input
    return gt.constant_pad_nd(input, [number for pair in reversed(pairs) for number in pair])


def count(length: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """Return the number of windows that fit in a padded axis: floor(room / stride) + 1.

    With `ceil`, one more may extend past the end, if it begins in the input or the padding before.
    """
    room = length + 2 * padding - dilation * (kernel - 1) - 1
    fitting = room // stride + 1
    return fitting + (ceil and room % stride != 0 and fitting * stride < length + padding)


def counts(
    name: str,
    lengths: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
) -> tuple[int, ...]:
    """Return the number of windows along each axis; raise if none fits."""
    at_least(name, "kernel_size", kernel, 1)
    at_least(name, "stride", stride, 1)
    at_least(name, "padding", padding, 0)
    at_least(name, "dilation", dilation, 1)
    each = zip(lengths, kernel, stride, padding, dilation, strict=True)
    found = tuple(count(*one, ceil_mode) for one in each)
    if any(number < 1 for number in found):
        raise ValueError(
            f"{name}: no window of size {tuple(kernel)} with dilation {tuple(dilation)} fits in "
            f"{tuple(lengths)} with padding {tuple(padding)}"
        )
    return found


def positions(
    beside: Tensor, number: int, kernel: int, stride: int, padding: int, dilation: int
) -> Tensor:
    """Return the positions of windows' values on an axis, [kernel, number]; in padding below 0."""
    within = arange_beside(beside, kernel).unsqueeze(1) * dilation
    return within + (arange_beside(beside, number) * stride - padding)


def places(along: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Combine positions along several axes into indices into these axes, flattened.

    The shapes are [..., kernel, number] for each axis and [..., *kernels, *numbers] together.
    """
    axes = len(lengths)
    flat: Any = 0
    for axis, (at, length) in enumerate(zip(along, lengths, strict=True)):
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = at.shape[-2:]
        flat = flat * length + at.reshape(*at.shape[:-2], *shape)
    return flat


def windows(
    input: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
    name: str = "windows",
) -> Tensor:
    """Return the windows over the last axes, [..., *kernel, *counts], with zeros past the input."""
    axes = len(kernel)
    lengths = input.shape[-axes:]
    numbers = counts(name, lengths, kernel, stride, padding, dilation, ceil_mode)
    each = list(zip(lengths, numbers, kernel, stride, padding, dilation, strict=True))
    margins = [
        (p, max((number - 1) * s + d * (k - 1) + 1 - p - length, 0))
        for length, number, k, s, p, d in each
    ]
    whole = padded(input, margins)
    where = [positions(input, number, k, s, 0, d) for _, number, k, s, _, d in each]
    return taken(whole, places(where, whole.shape[-axes:]), axes)


def overlapped(
    columns: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Add up windows [..., *kernel, *counts] at their positions: the transpose of `windows`."""
    axes = len(size)
    lead, kernel, numbers = (
        columns.shape[: -2 * axes],
        columns.shape[-2 * axes : -axes],
        columns.shape[-axes:],
    )
    whole = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    each = zip(numbers, kernel, stride, dilation, strict=True)
    at = places([positions(columns, n, k, s, 0, d) for n, k, s, d in each], whole)
    empty = filled(columns, (*lead, math.prod(whole)), 0)
    full = primitives.index_add(empty, -1, at.reshape(-1), columns.flatten(-2 * axes))
    return padded(full.reshape(*lead, *whole), [(-p, -p) for p in padding])


def taken(input: Tensor, at: Tensor, axes: int) -> Tensor:
    """Return the values at flat indices into the last axes, which the indices' axes replace."""
    flat = input.flatten(-axes).index_select(-1, at.reshape(-1))
    return flat.reshape(*input.shape[:-axes], *at.shape)


def along(input: Tensor, axis: int, at: Tensor) -> Tensor:
    """Return the values at positions [kernel, number] along an axis, counted from the back.

    Two axes, kernel and number, replace the axis.
    """
    found = input.index_select(axis, at.reshape(-1))
    return found.reshape(*input.shape[:axis], *at.shape, *input.shape[axis:][1:])


def over(values: Tensor, axis: int) -> Tensor:
    """Reshape values for positions along an axis so that they broadcast over the axes after it."""
    return values.reshape(*values.shape, *[1] * (-axis - 1))
