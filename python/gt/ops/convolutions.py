"""Convolutions: products of a kernel with the windows of a signal, and their transposes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gt._gt import Tensor
from gt.ops.annotations import DType, Size
from gt.ops.registry import function
from gt.ops.sliding import at_least, check_spatial, overlapped, padded, per_axis, wide, windows


@function
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Multiply windows over the last axis with kernels: out[o, t] = sum of w[o, c, k] x[c, t + k].

    Args:
        input: (channels, width), with or without batches.
        weight: the kernels: (outputs, channels / groups, width of a kernel).
        bias: what is added to each output channel.
        stride: from one window to the next.
        padding: how many zeros are before and after; "valid" for none, and "same" for an output
            as long as the input.
        dilation: from one value in a window to the next.
        groups: in how many groups, each with its share of outputs, the channels are.

    >>> gt.nn.functional.conv1d(gt.tensor([[1.0, 2.0, 4.0]]), gt.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]], dtype=float32)
    """
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@function
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Multiply windows over the last two axes with kernels; parameters as for `conv1d`.

    >>> gt.nn.functional.conv2d(gt.ones(1, 3, 8, 8), gt.ones(4, 3, 3, 3), padding="same").shape
    (1, 4, 8, 8)
    """
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@function
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Multiply windows over the last three axes with kernels; parameters as for `conv1d`.

    >>> gt.nn.functional.conv3d(gt.ones(1, 3, 4, 4, 4), gt.ones(2, 3, 2, 2, 2), stride=2).shape
    (1, 2, 2, 2, 2)
    """
    return _convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@function
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Add up kernels times the values of the input, at the windows that `conv1d` would take.

    It is the gradient of `conv1d` with respect to its input.

    Args:
        input: (channels, width), with or without batches.
        weight: the kernels: (channels, outputs / groups, width of a kernel).
        bias: what is added to each output channel.
        stride: from one window in the output to the next.
        padding: how much is taken away before and after.
        output_padding: how much is added after.
        groups: in how many groups, each with its share of outputs, the channels are.
        dilation: from one value in a window to the next.

    >>> gt.nn.functional.conv_transpose1d(gt.tensor([[1.0, 2.0]]), gt.ones(1, 1, 2), stride=2)
    tensor([[1., 1., 2., 2.]], dtype=float32)
    """
    options = bias, stride, padding, output_padding, groups, dilation
    return _transpose("conv_transpose1d", 1, input, weight, *options)


@function
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Add up kernels at windows over the last two axes; parameters as for `conv_transpose1d`.

    >>> gt.nn.functional.conv_transpose2d(gt.ones(4, 8, 8), gt.ones(4, 3, 2, 2), stride=2).shape
    (3, 16, 16)
    """
    options = bias, stride, padding, output_padding, groups, dilation
    return _transpose("conv_transpose2d", 2, input, weight, *options)


@function
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Add up kernels at windows over the last three axes; parameters as for `conv_transpose1d`.

    >>> gt.nn.functional.conv_transpose3d(gt.ones(4, 2, 2, 2), gt.ones(4, 3, 2, 2, 2)).shape
    (3, 3, 3, 3)
    """
    options = bias, stride, padding, output_padding, groups, dilation
    return _transpose("conv_transpose3d", 3, input, weight, *options)


@function
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size,
    padding: Size,
    dilation: Size,
    transposed: bool,
    output_padding: Size,
    groups: int,
) -> Tensor:
    """Do what `conv1d` and the others do, and transposed `conv_transpose1d` and the others.

    >>> gt.convolution(gt.ones(3, 8), gt.ones(4, 3, 3), None, 1, 0, 1, False, 0, 1).shape
    (4, 6)
    """
    axes = weight.ndim - 2
    if transposed:
        options = bias, stride, padding, output_padding, groups, dilation
        return _transpose("convolution", axes, input, weight, *options)
    return _convolution("convolution", axes, input, weight, bias, stride, padding, dilation, groups)


def _convolution(
    name: str,
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    """Multiply kernels, as rows of a matrix for each group, with windows as columns."""
    _check(name, axes, input, weight, groups, weight.shape[0])
    if input.shape[-axes - 1] != weight.shape[1] * groups:
        raise ValueError(
            f"{name}: input of shape {input.shape} has {input.shape[-axes - 1]} channels, weight "
            f"of shape {weight.shape} takes {weight.shape[1]} in each of {groups} groups"
        )
    kernel = weight.shape[2:]
    stride, dilation = (
        per_axis(name, parameter, value, axes)
        for parameter, value in (("stride", stride), ("dilation", dilation))
    )
    dtype, input, weight = input.dtype, wide(input), wide(weight)
    input, padding = _padded(name, input, kernel, stride, padding, dilation)
    found = windows(input, kernel, stride, padding, dilation, name=name)
    lead, numbers = found.shape[: -2 * axes - 1], found.shape[-axes:]
    columns = found.reshape(*lead, groups, math.prod(weight.shape[1:]), math.prod(numbers))
    rows = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    result = (rows @ columns).reshape(*lead, weight.shape[0], *numbers)
    return _with_bias(name, axes, result, bias, dtype)


def _padded(
    name: str, input: Tensor, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any
) -> tuple[Tensor, tuple[int, ...]]:
    """Give the padding in numbers; what is not the same before and after is in the input."""
    axes = len(kernel)
    if not isinstance(padding, str):
        return input, per_axis(name, "padding", padding, axes)
    if padding not in ("same", "valid"):
        raise ValueError(f"{name}: padding is '{padding}', expected 'same', 'valid' or numbers")
    if padding == "valid":
        return input, (0,) * axes
    if any(one != 1 for one in stride):
        raise ValueError(f"{name}: padding 'same' needs a stride of 1, it is {tuple(stride)}")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return padded(input, [(total // 2, total - total // 2) for total in totals]), (0,) * axes


def _transpose(
    name: str,
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    """Multiply transposed kernels with the values, and add up the windows that these are."""
    _check(name, axes, input, weight, groups, weight.shape[0])
    if input.shape[-axes - 1] != weight.shape[0]:
        raise ValueError(
            f"{name}: input of shape {input.shape} has {input.shape[-axes - 1]} channels, weight "
            f"of shape {weight.shape} takes {weight.shape[0]}"
        )
    options = dict(stride=stride, padding=padding, output_padding=output_padding, dilation=dilation)
    stride, padding, more, dilation = (
        per_axis(name, parameter, value, axes) for parameter, value in options.items()
    )
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
        raise ValueError(f"{name}: output_padding is {more}, expected less than stride or dilation")
    dtype, input, weight = input.dtype, wide(input), wide(weight)
    lead, lengths, kernel = input.shape[: -axes - 1], input.shape[-axes:], weight.shape[2:]
    values = input.reshape(*lead, groups, weight.shape[0] // groups, math.prod(lengths))
    rows = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:])).mT
    outputs = weight.shape[1] * groups
    columns = (rows @ values).reshape(*lead, outputs, *kernel, *lengths)
    each = zip(lengths, kernel, stride, padding, more, dilation, strict=True)
    size = [(n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, m, d in each]
    if min(size) < 1:
        raise ValueError(f"{name}: padding {padding} leaves nothing of {lengths}: {tuple(size)}")
    result = overlapped(columns, size, stride, padding, dilation)
    return _with_bias(name, axes, result, bias, dtype)


def _check(name: str, axes: int, input: Tensor, weight: Tensor, groups: int, shared: int) -> None:
    """Raise where input, kernels and groups do not fit."""
    check_spatial(name, input, axes)
    if weight.ndim != axes + 2:
        raise ValueError(f"{name}: weight has shape {weight.shape}, expected {axes + 2} axes")
    if input.dtype != weight.dtype:
        raise TypeError(
            f"{name}: input is {input.dtype.name} and weight {weight.dtype.name}, expected the same"
        )
    at_least(name, "groups", (groups,), 1)
    at_least(name, "the size of a kernel", weight.shape[2:], 1)
    if shared % groups:
        raise ValueError(
            f"{name}: weight of shape {weight.shape} cannot be shared by {groups} groups"
        )


def _with_bias(name: str, axes: int, output: Tensor, bias: Tensor | None, dtype: DType) -> Tensor:
    """Add a number to each channel, and give the result in the input's dtype."""
    if bias is None:
        return output._cast(dtype)
    channels = output.shape[-axes - 1]
    if bias.shape != (channels,) or bias.dtype != dtype:
        raise ValueError(
            f"{name}: bias is {bias.dtype.name} of shape {bias.shape}, expected {dtype.name} of "
            f"shape {(channels,)}"
        )
    return (output + bias.reshape(channels, *[1] * axes))._cast(dtype)
