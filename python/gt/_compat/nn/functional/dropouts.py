"""Dropout."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor, float32, rand_like
from gt._lines import warn
from gt.ops.registry import function
from gt.ops.sizes import filled

from .common import NN, given, wide


@function(namespace=NN)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each element to 0 with probability p, and multiply the rest by 1 / (1 - p).

    Args:
        input: floats or complex numbers.
        p: the probability, from 0 to 1.
        training: whether to drop at all; otherwise the input is returned.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.dropout(gt.ones(2), 1.0)
    tensor([0., 0.], dtype=float32)
    """
    _check_probability("dropout", p)
    if not training or p == 0:
        return input
    return given(
        input, _dropped(wide("dropout", input, complex=True), input, p), inplace, "dropout_"
    )


def _check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: the probability is {p}, expected 0 to 1")


def _dropped(input: Tensor, like: Tensor, p: float) -> Tensor:
    """Drop elements of the input, drawing one random number per element of `like`."""
    if p == 1:
        return input * 0
    return input * (rand_like(like, dtype=float32) >= p) * (1 / (1 - p))


def _channels(input: Tensor) -> Tensor:
    """Return a tensor with one element for each channel of each sample, axes 0 and 1."""
    if input.ndim < 2:
        raise ValueError(f"dropout of channels: input has shape {input.shape}, expected 2 axes")
    return filled(input, (*input.shape[:2], *[1] * (input.ndim - 2)), 0, float32)


def _dropped_channels(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, single: bool = False
) -> Tensor:
    """Drop entire channels: axis 1, or axis 0 for a single sample."""
    _check_probability(name, p)
    if not training or p == 0:
        return input
    whole = input.unsqueeze(0) if single else input
    result = _dropped(wide(name, whole, complex=True), _channels(whole), p)
    return given(input, result.squeeze(0) if single else result, inplace, f"{name}_")


@function(namespace=NN)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability p, and multiply the rest by 1 / (1 - p).

    The input is (samples, channels, length) or (channels, length).

    Args:
        input: (samples, channels, length) or (channels, length).
        p: the probability, from 0 to 1.
        training: whether to drop at all; otherwise the input is returned.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.dropout1d(gt.ones(1, 2), 1.0)
    tensor([[0., 0.]], dtype=float32)
    """
    if input.ndim not in (2, 3):
        raise ValueError(f"dropout1d: input has shape {input.shape}, expected 2 or 3 axes")
    return _dropped_channels("dropout1d", input, p, training, inplace, input.ndim == 2)


@function(namespace=NN)
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability p, and multiply the rest by 1 / (1 - p).

    The input is (samples, channels, height, width).

    Args:
        input: (samples, channels, height, width).
        p: the probability, from 0 to 1.
        training: whether to drop at all; otherwise the input is returned.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.dropout2d(gt.ones(1, 1, 1, 2), 1.0)
    tensor([[[[0., 0.]]]], dtype=float32)
    """
    _warn_of_axes("dropout2d", input, (4,))
    return _dropped_channels("dropout2d", input, p, training, inplace)


@function(namespace=NN)
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability p, and multiply the rest by 1 / (1 - p).

    The input is (samples, channels, depth, height, width) or (channels, depth, height, width).

    Args:
        input: (samples, channels, depth, height, width) or (channels, depth, height, width).
        p: the probability, from 0 to 1.
        training: whether to drop at all; otherwise the input is returned.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.dropout3d(gt.ones(1, 1, 1, 1, 1), 1.0)
    tensor([[[[[0.]]]]], dtype=float32)
    """
    _warn_of_axes("dropout3d", input, (4, 5))
    return _dropped_channels("dropout3d", input, p, training, inplace, input.ndim != 5)


def _warn_of_axes(name: str, input: Tensor, expected: tuple[int, ...]) -> None:
    if input.ndim not in expected:
        warn(
            f"{name}: the input of shape {input.shape} does not have {expected[0]} axes: axis 1 is "
            "taken as the channels",
        )


@function(namespace=NN)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Drop elements, keeping mean 0 and variance 1; for use with `selu` (Klambauer, 2017).

    Dropped elements are set to selu's limit at minus infinity; all are then scaled and shifted.

    Args:
        input: floats or complex numbers.
        p: the probability, from 0 to 1.
        training: whether to drop at all; otherwise the input is returned.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.alpha_dropout(gt.ones(2), 0.5, training=False)
    tensor([1., 1.], dtype=float32)
    """
    _check_probability("alpha_dropout", p)
    if not training or p == 0:
        return input
    result = _alpha_dropped(wide("alpha_dropout", input, complex=True), input, p)
    return given(input, result, inplace, "alpha_dropout_")


@function(namespace=NN)
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Drop entire channels, axis 1, as `alpha_dropout` drops elements.

    Args:
        input: (samples, channels, ...).
        p: the probability, from 0 to 1.
        training: whether to drop at all; otherwise the input is returned.
        inplace: whether to store the result in the input.

    >>> gt.nn.functional.feature_alpha_dropout(gt.ones(1, 2), 0.5, training=False)
    tensor([[1., 1.]], dtype=float32)
    """
    _check_probability("feature_alpha_dropout", p)
    if not training or p == 0:
        return input
    result = _alpha_dropped(wide("feature_alpha_dropout", input, complex=True), _channels(input), p)
    return given(input, result, inplace, "feature_alpha_dropout_")


def _alpha_dropped(input: Tensor, like: Tensor, p: float) -> Tensor:
    """Return a * (x or the limit) + b, where a and b keep mean and variance."""
    if p == 1:
        return input * 0
    limit = -1.7580993408473766  # of selu: -alpha * scale
    a = 1 / math.sqrt((limit * limit * p + 1) * (1 - p))
    kept = rand_like(like, dtype=float32) >= p
    return gt.where(kept, input * a, limit * a) + -a * limit * p
