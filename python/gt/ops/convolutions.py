"""Convolutions: products of a kernel with the windows of a signal, and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Size
from gt.ops.registry import function
from gt.ops.sliding import at_least, check_spatial, counts, per_axis


@function(autocast="lower")
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Correlate the last axis with kernels: out[o, t] = sum over c, k of w[o, c, k] x[c, t + k].

    Args:
        input: (channels, width), or (batch, channels, width).
        weight: the kernels: (outputs, channels / groups, kernel width).
        bias: a value added to each output channel.
        stride: the distance from one window to the next.
        padding: the number of zeros before and after; "valid" for none, and "same" for an output
            as long as the input.
        dilation: the distance from one value in a window to the next.
        groups: the number of groups of channels, each with its own outputs.

    >>> gt.nn.functional.conv1d(gt.tensor([[1.0, 2.0, 4.0]]), gt.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]], dtype=float32)
    """
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@function(autocast="lower")
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Correlate the last two axes with kernels; parameters as for `conv1d`.

    >>> gt.nn.functional.conv2d(gt.ones(1, 3, 8, 8), gt.ones(4, 3, 3, 3), padding="same").shape
    (1, 4, 8, 8)
    """
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@function(autocast="lower")
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Correlate the last three axes with kernels; parameters as for `conv1d`.

    >>> gt.nn.functional.conv3d(gt.ones(1, 3, 4, 4, 4), gt.ones(2, 3, 2, 2, 2), stride=2).shape
    (1, 2, 2, 2, 2)
    """
    return _convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@function(autocast="lower")
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
    """Add up kernels times the values of the input, at the windows that `conv1d` would read.

    It is the gradient of `conv1d` with respect to its input.

    Args:
        input: (channels, width), or (batch, channels, width).
        weight: the kernels: (channels, outputs / groups, kernel width).
        bias: a value added to each output channel.
        stride: the distance from one window in the output to the next.
        padding: the number of values cut off before and after.
        output_padding: the number of values added after.
        groups: the number of groups of channels, each with its own outputs.
        dilation: the distance from one value in a window to the next.

    >>> gt.nn.functional.conv_transpose1d(gt.tensor([[1.0, 2.0]]), gt.ones(1, 1, 2), stride=2)
    tensor([[1., 1., 2., 2.]], dtype=float32)
    """
    options = bias, stride, padding, output_padding, groups, dilation
    return _transpose("conv_transpose1d", 1, input, weight, *options)


@function(autocast="lower")
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


@function(autocast="lower")
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


@function(autocast="lower")
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
    """Compute `conv1d`, 2d or 3d by the rank of `weight`, or their `conv_transpose`.

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
    """Check the arguments, and convolve an input with padding."""
    _check(name, axes, input, weight, groups)
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
    low, high = _margins(name, kernel, stride, padding, dilation)
    lengths = [n + h - p for n, p, h in zip(input.shape[-axes:], low, high, strict=True)]
    counts(name, lengths, kernel, stride, low, dilation)
    options = stride, low, high, dilation, (1,) * axes, groups
    return _with_bias(name, axes, _general(axes, input, weight, *options), bias)


def _margins(
    name: str, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after each axis."""
    axes = len(kernel)
    if not isinstance(padding, str):
        padding = per_axis(name, "padding", padding, axes)
        return padding, padding
    if padding not in ("same", "valid"):
        raise ValueError(f"{name}: padding is '{padding}', expected 'same', 'valid' or numbers")
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if any(one != 1 for one in stride):
        raise ValueError(f"{name}: padding 'same' needs a stride of 1, it is {tuple(stride)}")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple(total // 2 for total in totals), tuple(-(-total // 2) for total in totals)


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
    """Convolve the input, with zeros between its values, with reversed kernels."""
    _check(name, axes, input, weight, groups)
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
    for parameter, values, lowest in (
        ("stride", stride, 1),
        ("padding", padding, 0),
        ("output_padding", more, 0),
        ("dilation", dilation, 1),
    ):
        at_least(name, parameter, values, lowest)
    lengths, kernel = input.shape[-axes:], weight.shape[2:]
    each = zip(lengths, kernel, stride, padding, more, dilation, strict=True)
    size = [(n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, m, d in each]
    if min(size) < 1:
        raise ValueError(
            f"{name}: padding {padding} leaves no output of lengths {lengths}: {tuple(size)}"
        )
    low = [d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True)]
    high = [p + m for p, m in zip(low, more, strict=True)]
    grouped = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    turned = grouped.transpose(1, 2).flatten(0, 1).flip(tuple(range(-axes, 0)))
    result = _general(axes, input, turned, (1,) * axes, low, high, dilation, stride, groups)
    return _with_bias(name, axes, result, bias)


def _general(axes: int, input: Tensor, weight: Tensor, *options: Any) -> Tensor:
    """Convolve an input with or without a batch axis, real or complex."""
    if input.ndim != axes + 2:
        return _general(axes, input.unsqueeze(0), weight, *options).squeeze(0)
    if not input.dtype.is_complex:
        return primitives.conv_general(input, weight, *options)
    (a, b), (c, d) = ((gt.real(x), gt.imag(x)) for x in (input, weight))
    real = _general(axes, a, c, *options) - _general(axes, b, d, *options)
    return gt.complex(real, _general(axes, a, d, *options) + _general(axes, b, c, *options))


def _check(name: str, axes: int, input: Tensor, weight: Tensor, groups: int) -> None:
    """Raise if input, kernels and groups do not fit together."""
    check_spatial(name, input, axes)
    if weight.ndim != axes + 2:
        raise ValueError(f"{name}: weight has shape {weight.shape}, expected {axes + 2} axes")
    if input.dtype != weight.dtype:
        raise TypeError(
            f"{name}: input is {input.dtype.name} and weight {weight.dtype.name}, expected the same"
        )
    at_least(name, "groups", (groups,), 1)
    at_least(name, "the size of a kernel", weight.shape[2:], 1)
    if weight.shape[0] % groups:
        raise ValueError(
            f"{name}: weight of shape {weight.shape} cannot be divided among {groups} groups"
        )


def _with_bias(name: str, axes: int, output: Tensor, bias: Tensor | None) -> Tensor:
    """Add one number to each channel, if there is a bias."""
    if bias is None:
        return output
    channels = output.shape[-axes - 1]
    if bias.shape != (channels,) or bias.dtype != output.dtype:
        raise ValueError(
            f"{name}: bias is {bias.dtype.name} of shape {bias.shape}, expected "
            f"{output.dtype.name} of shape {(channels,)}"
        )
    return output + bias.reshape(channels, *[1] * axes)


@function
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve along the first axis of an input with axes (time, batch, channels).

    Args:
        input: (time, batch, channels in).
        weight: (length of the kernel, channels in, channels out).
        bias: (channels out,).
        pad: the number of zeros before and after.

    >>> gt.nn.functional.conv_tbc(gt.ones(3, 1, 1), gt.ones(2, 1, 1), gt.zeros(1)).flatten()
    tensor([2., 2.], dtype=float32)
    """
    for name, of in (("input", input), ("weight", weight)):
        if of.ndim != 3:
            raise RuntimeError(f"conv_tbc: {name} has shape {of.shape}, expected 3 axes")
    channels_first = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return channels_first.permute(2, 0, 1)
