"""Piecewise linear activations: ReLU and its variants, hard and shrinking activations."""

from __future__ import annotations

import gt
from gt._gt import Tensor, element_of, primitives, rand_like
from gt.ops.registry import function

from .common import NN, also_in_place, check_slope, given, need_floats, wide


@function(namespace=NN)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return max(x, 0).

    >>> gt.nn.functional.relu(gt.tensor([-1.0, 2.0]))
    tensor([0., 2.], dtype=float32)
    """
    return given(input, primitives.relu(input), inplace, "relu_")


@function(namespace=NN)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6).

    >>> gt.nn.functional.relu6(gt.tensor([-1.0, 2.0, 7.0]))
    tensor([0., 2., 6.], dtype=float32)
    """
    return given(input, _between(input, 0, 6), inplace, "relu6_")


@function(namespace=NN)
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Clamp values to [min_val, max_val]; at the limits themselves, the gradient is 0.

    Args:
        input: the tensor.
        min_val: the lower limit.
        max_val: the upper limit.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.hardtanh(gt.tensor([-3.0, 0.5, 3.0]))
    tensor([-1. ,  0.5,  1. ], dtype=float32)
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val is {min_val}, more than max_val, which is {max_val}")
    return given(input, _between(input, min_val, max_val), inplace, "hardtanh_")


def _between(input: Tensor, low: float, high: float) -> Tensor:
    """Clamp values; unlike `clamp`, with a gradient of 0 at the limits themselves."""
    return gt.where(input <= low, low, gt.where(input >= high, high, input))


@function(namespace=NN)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where it is positive, negative_slope * x elsewhere.

    Args:
        input: floats.
        negative_slope: the slope of negative values; below 0 it has no gradient in place.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.leaky_relu(gt.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5,  2. ], dtype=float32)
    """
    check_slope("leaky_relu_", input, negative_slope, inplace)
    x = wide("leaky_relu", input)
    return given(input, gt.where(x > 0, x, x * negative_slope), inplace, "leaky_relu_")


@function(namespace=NN, autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where it is positive, weight * x elsewhere.

    Args:
        input: a tensor with channels along axis 1.
        weight: one slope, or one for each channel.

    >>> gt.nn.functional.prelu(gt.tensor([-1.0, 2.0]), gt.tensor(0.5))
    tensor([-0.5,  2. ], dtype=float32)
    """
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise ValueError(
            f"prelu: weight of shape {weight.shape} does not fit an input of shape {input.shape}, "
            f"expected one slope or {channels}, one for each channel"
        )
    if weight.dtype != input.dtype:
        raise TypeError(f"prelu: weight is of dtype {weight.dtype.name}, not {input.dtype.name}")
    shape = [-1] + [1] * (input.ndim - 2) if input.ndim > 1 else [1] * input.ndim
    return gt.where(input > 0, input, input * weight.reshape(shape))


@function(namespace=NN)
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return x where it is positive, x times a slope elsewhere.

    In training mode, each slope is drawn from [lower, upper); otherwise all are their mean.

    Args:
        input: floats.
        lower: the lowest slope.
        upper: the highest slope.
        training: whether slopes are drawn.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.rrelu(gt.tensor([-1.0, 2.0]), 0.0, 1.0)
    tensor([-0.5,  2. ], dtype=float32)
    """
    check_slope("rrelu_", input, lower if training else (lower + upper) / 2, inplace)
    x = wide("rrelu", input)
    slope: Tensor | float = (lower + upper) / 2
    if training:
        slope = lower + (upper - lower) * rand_like(x)
    return given(input, gt.where(x > 0, x, x * slope), inplace, "rrelu_")


@function(namespace=NN)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above the threshold, the value elsewhere.

    Args:
        input: the tensor.
        threshold: the limit.
        value: the value of elements that are not above it.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.threshold(gt.tensor([0.5, 2.0]), 1, 20)
    tensor([20.,  2.], dtype=float32)
    """
    threshold, value = (
        element_of("threshold", number, input.dtype) for number in (threshold, value)
    )
    return given(input, gt.where(input <= threshold, value, input), inplace, "threshold_")


@function(namespace=NN)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x / 6 + 1/2, clamped to [0, 1].

    >>> gt.nn.functional.hardsigmoid(gt.tensor([-4.0, 0.0, 4.0]))
    tensor([0. , 0.5, 1. ], dtype=float32)
    """
    result = _between(wide("hardsigmoid", input) + 3, 0, 6) / 6
    return given(input, result, inplace, "hardsigmoid_")


@function(namespace=NN)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x * hardsigmoid(x).

    >>> gt.nn.functional.hardswish(gt.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.       ,  0.6666667,  4.       ], dtype=float32)
    """
    x = wide("hardswish", input)
    return given(input, x * _between(x + 3, 0, 6) / 6, inplace, "hardswish_")


@function(namespace=NN)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x where |x| > lambd, 0 elsewhere.

    >>> gt.nn.functional.hardshrink(gt.tensor([-1.0, 0.3, 2.0]))
    tensor([-1.,  0.,  2.], dtype=float32)
    """
    need_floats("hardshrink", input)
    return gt.where((input >= -lambd) & (input <= lambd), 0, input)


@function(namespace=NN)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd, but not beyond 0.

    >>> gt.nn.functional.softshrink(gt.tensor([-1.0, 0.3, 2.0]))
    tensor([-0.5,  0. ,  1.5], dtype=float32)
    """
    if lambd < 0:
        raise ValueError(f"softshrink: lambd is {lambd}, expected 0 or more")
    need_floats("softshrink", input)
    beyond = input.abs() > lambd
    return gt.where(beyond, input - input.sign() * lambd, input * 0)


also_in_place(relu, hardtanh, leaky_relu, rrelu, threshold)
