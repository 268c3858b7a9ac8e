"""Pooling by norms, and fractional max pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, rand_like
from gt.ops.annotations import Size
from gt.ops.maxima import largest, with_indices
from gt.ops.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from gt.ops.registry import function
from gt.ops.sizes import filled
from gt.ops.sliding import check_spatial, per_axis

NN = "gt.nn.functional"


@function(namespace=NN)
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the norm of windows over the last axis, with signs: (sum of x^p)^(1/p).

    >>> gt.nn.functional.lp_pool1d(gt.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]], dtype=float32)
    """
    return _norms("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@function(namespace=NN)
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the norm of windows over the last two axes, as `lp_pool1d`.

    >>> gt.nn.functional.lp_pool2d(gt.ones(1, 2, 2), 2, 2)
    tensor([[[2.]]], dtype=float32)
    """
    return _norms("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@function(namespace=NN)
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the norm of windows over the last three axes, as `lp_pool1d`.

    >>> gt.nn.functional.lp_pool3d(gt.ones(1, 2, 2, 2), 3, 2)
    tensor([[[[2.]]]], dtype=float32)
    """
    return _norms("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _norms(
    name: str, axes: int, input: Tensor, p: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    """Return norms of windows, from the mean of powers; for infinite p, extremes of magnitudes."""
    if p == 0:
        raise ValueError(f"{name}: norm_type is 0, expected another number")
    kernel = per_axis(name, "kernel_size", kernel_size, axes)
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[axes - 1]
    extreme = (max_pool1d, max_pool2d, max_pool3d)[axes - 1]
    if math.isinf(p):
        sign = 1 if p > 0 else -1
        return sign * extreme(sign * input.abs(), kernel, stride, ceil_mode=ceil_mode)
    total = average(input.pow(p), kernel, stride, ceil_mode=ceil_mode) * math.prod(kernel)
    # At 0 the slope of a root is infinite; as in PyTorch, the gradient is 0.
    zero = total == 0
    return gt.where(zero, 0.0 if p > 0 else math.inf, total.masked_fill(zero, 1).pow(1 / p))


@function(namespace=NN)
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest value of each window, at random positions (Graham, 2014).

    Args:
        input: a tensor of (channels, height, width), with or without a batch axis.
        kernel_size: the length of a window along each axis.
        output_size: the number of windows along each axis.
        output_ratio: instead of `output_size`, the number of windows as a fraction of a length.
        return_indices: whether the result is `(values, indices)`, with the index of each value in
            the flattened spatial axes.
        _random_samples: numbers from 0 to 1 instead of random ones: [batch, channels, 2].

    >>> gt.nn.functional.fractional_max_pool2d(gt.ones(1, 5, 5), 2, output_size=3).shape
    (1, 3, 3)
    """
    options = kernel_size, output_size, output_ratio, return_indices, _random_samples
    return _fractional("fractional_max_pool2d", 2, input, *options)


@function(namespace=NN)
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest value of each window over the last three axes, at random positions.

    Parameters are as for `fractional_max_pool2d`; `_random_samples` is [batch, channels, 3].

    >>> gt.nn.functional.fractional_max_pool3d(gt.ones(1, 5, 5, 5), 2, output_ratio=0.5).shape
    (1, 2, 2, 2)
    """
    options = kernel_size, output_size, output_ratio, return_indices, _random_samples
    return _fractional("fractional_max_pool3d", 3, input, *options)


def _fractional(
    name: str,
    axes: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    """Return the largest value of windows whose positions are drawn for each channel."""
    check_spatial(name, input, axes)
    kernel = per_axis(name, "kernel_size", kernel_size, axes)
    lengths, planes = input.shape[-axes:], input.shape[:-axes]
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name}: give output_size or output_ratio")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, tuple | list) else [output_ratio] * axes
        output_size = [int(length * ratio) for length, ratio in zip(lengths, ratios, strict=True)]
    numbers = per_axis(name, "output_size", output_size, axes)
    if not all(
        0 < n <= length - k + 1 for n, length, k in zip(numbers, lengths, kernel, strict=True)
    ):
        raise ValueError(
            f"{name}: {numbers} windows of {kernel} do not fit in {lengths}, expected 1 to "
            "length - window + 1 along each axis"
        )
    if samples is None:
        samples = rand_like(filled(input, (*planes, axes), 0))
    else:
        samples = _samples_of(name, samples, planes, axes)
    # PyTorch's order of samples: for 2 axes width and height, for 3 from the first axis on.
    order = (1, 0) if axes == 2 else range(axes)
    each = zip(order, lengths, kernel, numbers, strict=True)
    values, index = largest(input, [_drawn(samples[..., place], *one) for place, *one in each])
    return (values, index) if return_indices else values


def _samples_of(name: str, samples: Tensor, planes: Sequence[int], axes: int) -> Tensor:
    """Return the samples of each channel; samples of further images are ignored."""
    batch = planes[0] if len(planes) == 2 else 1
    fits = samples.ndim == 3 and samples.shape[0] >= batch
    if not fits or tuple(samples.shape[1:]) != (planes[-1], axes):
        raise ValueError(
            f"{name}: _random_samples have shape {samples.shape}, expected "
            f"{(batch, planes[-1], axes)}"
        )
    return samples[:batch].reshape(*planes, axes)


def _drawn(sample: Tensor, length: int, kernel: int, number: int) -> Tensor:
    """Return positions in windows along an axis, [..., kernel, number], by one sample per channel.

    Window i begins at trunc((i + u) a) - trunc(u a) with a = (length - kernel) / (number - 1), and
    the last one ends with the axis.
    """
    each = arange_beside(sample, number)
    step = (length - kernel) / max(number - 1, 1)
    sample = sample.unsqueeze(-1)
    begin = ((sample + each) * step).long() - (sample * step).long()
    begin = gt.where(each == number - 1, length - kernel, begin)
    return begin.unsqueeze(-2) + arange_beside(sample, kernel).unsqueeze(-1)


for _pooling in (fractional_max_pool2d, fractional_max_pool3d):
    with_indices(_pooling)
