"""Pooling: the mean or the maximum of the values in sliding windows."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, primitives
from gt.ops.annotations import Size
from gt.ops.maxima import with_indices
from gt.ops.registry import function
from gt.ops.sizes import filled
from gt.ops.sliding import check_spatial, counts, per_axis, stride_of, wide


@function
def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Average windows over the last axis of (batch, channels, width).

    Args:
        input: the tensor, with or without a batch axis.
        kernel_size: the length of a window.
        stride: the distance from one window to the next; the length of a window by default.
        padding: the number of zeros before and after, at most half a window.
        ceil_mode: whether the last window may extend past the end.
        count_include_pad: whether padding counts in the average.

    >>> gt.nn.functional.avg_pool1d(gt.tensor([[1.0, 3.0, 5.0]]), 2, stride=1)
    tensor([[2., 4.]], dtype=float32)
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad
    )


@function(namespace="gt.nn.functional")
def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Average windows over the last two axes; parameters as for `avg_pool1d`.

    `divisor_override` divides the sums instead of the size of the window.

    >>> gt.nn.functional.avg_pool2d(gt.tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2)
    tensor([[[3.]]], dtype=float32)
    """
    options = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _avg_pool("avg_pool2d", 2, input, *options)


@function(namespace="gt.nn.functional")
def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Average windows over the last three axes; parameters as for `avg_pool2d`.

    >>> gt.nn.functional.avg_pool3d(gt.ones(1, 4, 4, 4), 2).shape
    (1, 2, 2, 2)
    """
    options = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _avg_pool("avg_pool3d", 3, input, *options)


def _avg_pool(
    name: str,
    axes: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the sums of windows divided by the number of values that count."""
    if divisor_override == 0:
        raise ValueError(f"{name}: divisor_override is 0, expected another number or None")
    kernel, stride, padding = _options(name, axes, input, kernel_size, stride, padding)
    _check_half(name, padding, kernel)
    lengths = input.shape[-axes:]
    numbers = counts(name, lengths, kernel, stride, padding, (1,) * axes, ceil_mode)
    each = list(zip(lengths, numbers, kernel, stride, padding, strict=True))
    # The last window may end before the padding does, or extend past it.
    after = [(number - 1) * s + k - p - length for length, number, k, s, p in each]
    total = _sums(wide(input), kernel, stride, padding, after)
    divisor: Any = divisor_override
    if divisor is None:
        sizes = [_counted(input, *one, count_include_pad) for one in each]
        divisor = functools.reduce(lambda outer, inner: outer.unsqueeze(-1) * inner, sizes)
    if input.dtype.is_floating_point:
        return (total / divisor)._cast(input.dtype)
    return gt.div(total, divisor, rounding_mode="trunc")._cast(input.dtype)


def _sums(
    input: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
) -> Tensor:
    """Return the sums of windows, by convolving each plane as an image with a kernel of ones."""
    axes = len(kernel)
    lead, lengths, single = input.shape[:-axes], input.shape[-axes:], (1,) * axes
    planes = input.reshape(math.prod(lead), 1, *lengths)
    ones = filled(input, (1, 1, *kernel), 1)
    sums = primitives.conv_general(planes, ones, stride, before, after, single, single, 1)
    return sums.reshape(*lead, *sums.shape[2:])


def _counted(
    beside: Tensor, length: int, number: int, kernel: int, stride: int, padding: int, padded: bool
) -> Tensor:
    """Return the number of values that count in each window along an axis, with padding or not."""
    begin = arange_beside(beside, number) * stride - padding
    end = (begin + kernel).clamp(max=length + padding)
    return end - begin if padded else end.clamp(max=length) - begin.clamp(min=0)


def _options(
    name: str, axes: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the window, stride and padding of a pooling for each axis."""
    check_spatial(name, input, axes)
    kernel = per_axis(name, "kernel_size", kernel_size, axes)
    padding = per_axis(name, "padding", padding, axes)
    return kernel, stride_of(name, stride, kernel), padding


def _check_half(name: str, padding: Sequence[int], kernel: Sequence[int]) -> None:
    """Raise if padding is longer than half a window."""
    if any(p > k // 2 for p, k in zip(padding, kernel, strict=True)):
        raise ValueError(
            f"{name}: padding is {padding}, expected no more than half of windows of {kernel}"
        )


@function
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest value of windows over the last axis of (batch, channels, width).

    Args:
        input: the tensor, with or without a batch axis.
        kernel_size: the number of values in a window.
        stride: the distance from one window to the next; `kernel_size` by default.
        padding: how far windows extend past the ends, at most half a window.
        dilation: the distance from one value in a window to the next.
        ceil_mode: whether the last window may extend past the end.
        return_indices: whether the result is `(values, indices)`; indices count in the spatial
            axes, flattened.

    >>> gt.nn.functional.max_pool1d(gt.tensor([[1.0, 4.0, 2.0, 3.0]]), 2)
    tensor([[4., 3.]], dtype=float32)
    """
    options = kernel_size, stride, padding, dilation, ceil_mode
    return _max_pool("max_pool1d", 1, input, *options, return_indices)


@function
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest value of windows over the last two axes; parameters as for `max_pool1d`.

    >>> gt.nn.functional.max_pool2d(gt.tensor([[[1.0, 2.0], [6.0, 3.0]]]), 2, return_indices=True)
    (tensor([[[6.]]], dtype=float32), tensor([[[2]]], dtype=int64))
    """
    options = kernel_size, stride, padding, dilation, ceil_mode
    return _max_pool("max_pool2d", 2, input, *options, return_indices)


@function
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest value of windows over the last three axes; parameters as for `max_pool1d`.

    >>> gt.nn.functional.max_pool3d(gt.ones(1, 4, 4, 4), 2).shape
    (1, 2, 2, 2)
    """
    options = kernel_size, stride, padding, dilation, ceil_mode
    return _max_pool("max_pool3d", 3, input, *options, return_indices)


def _max_pool(
    name: str,
    axes: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    """Return the largest value of windows, in which only values of the input count."""
    kernel, stride, padding = _options(name, axes, input, kernel_size, stride, padding)
    dilation = per_axis(name, "dilation", dilation, axes)
    _check_half(name, padding, kernel)
    lengths = input.shape[-axes:]
    numbers = counts(name, lengths, kernel, stride, padding, dilation, ceil_mode)
    for one in zip(lengths, numbers, kernel, stride, padding, dilation, strict=True):
        _check_inside(name, *one)
    options = kernel, stride, padding, dilation, ceil_mode
    values, indices = primitives.max_pool(input, *options)
    return (values, indices) if return_indices else values


def _check_inside(
    name: str, length: int, number: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    """Raise if a window covers only padding."""
    reach = range(0, kernel * dilation, dilation)
    first = range(-padding, number * stride - padding, stride) if dilation > length else ()
    if any(all(not 0 <= begin + step < length for step in reach) for begin in first):
        raise ValueError(
            f"{name}: a window of {kernel} with dilation {dilation} covers only padding, in an "
            f"axis of length {length} with padding {padding}"
        )


function(with_indices(max_pool1d))
with_indices(max_pool2d)
with_indices(max_pool3d)
