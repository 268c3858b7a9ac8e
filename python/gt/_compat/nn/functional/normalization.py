"""Normalizations."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor
from gt.ops.annotations import Size
from gt.ops.native import affine, by_channel, follow, moments, normalized_rows
from gt.ops.registry import function
from gt.ops.sizes import filled

from .common import NN, in_float32, wide


@function(namespace=NN, autocast="float32")
def layer_norm(
    input: Tensor,
    normalized_shape: Size,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Return weight * (x - mean) / sqrt(var + eps) + bias over the last axes (Ba et al., 2016).

    Args:
        input: floats.
        normalized_shape: the shape of the last axes, over which mean and variance are computed; or
            the length of the last one.
        weight: a factor for each element of these axes.
        bias: a term added to each element of these axes.
        eps: added to the variance.

    >>> gt.nn.functional.layer_norm(gt.tensor([1.0, 3.0]), (2,))
    tensor([-0.999995,  0.999995], dtype=float32)
    """
    return normalized_rows(input, normalized_shape, weight, bias, eps)


@function(namespace=NN)
def rms_norm(
    input: Tensor,
    normalized_shape: Size,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Return weight * x / sqrt(mean(x²) + eps) over the last axes (Zhang and Sennrich, 2019).

    By default, eps is the machine epsilon of the dtype, of float32 for 16-bit floats.

    Args:
        input: floats or complex numbers.
        normalized_shape: the shape of the last axes, over which the mean is computed; or the length
            of the last one.
        weight: a factor for each element of these axes.
        eps: added to the mean of squares.

    >>> gt.nn.functional.rms_norm(gt.tensor([1.0, 7.0]), (2,))
    tensor([0.2, 1.4], dtype=float32)
    """
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or input.shape[max(input.ndim - len(shape), 0) :] != shape:
        raise ValueError(f"rms_norm: the last axes of shape {input.shape} are not {shape}")
    if weight is not None and weight.shape != shape:
        raise ValueError(f"rms_norm: weight has shape {weight.shape}, expected {shape}")
    x = wide("rms_norm", input, complex=True)
    eps = gt.finfo(x.dtype).eps if eps is None else eps
    mean = (x * x).mean(tuple(range(-len(shape), 0)), keepdim=True)
    return affine(x * (mean + eps).rsqrt(), weight, None)._cast(input.dtype)


@function(namespace=NN, autocast="float32")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalize groups of channels, axis 1, in each sample (Wu and He, 2018).

    Args:
        input: (samples, channels, ...).
        num_groups: the number of groups, a divisor of the number of channels; mean and variance are
            computed over each.
        weight: a factor for each channel.
        bias: a term added to each channel.
        eps: added to the variance.

    >>> gt.nn.functional.group_norm(gt.tensor([[1.0, 3.0]]), 1)
    tensor([[-0.999995,  0.999995]], dtype=float32)
    """
    if input.ndim < 2:
        raise ValueError(f"group_norm: input has shape {input.shape}, expected 2 axes or more")
    samples, channels, *inner = input.shape
    if num_groups > 0 and samples * channels // num_groups * math.prod(inner) == 1:
        raise ValueError(f"group_norm: an input of shape {input.shape} has one value per group")
    size = math.prod(inner)
    return gt.native_group_norm(input, weight, bias, samples, channels, size, num_groups, eps)[0]


@function(namespace=NN)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalize each channel, axis 1, over all samples (Ioffe and Szegedy, 2015).

    Args:
        input: a tensor of (samples, channels, ...).
        running_mean: the running mean of each channel: updated in place with `training`, otherwise
            used for the normalization.
        running_var: the running variance of each channel, treated in the same way.
        weight: a factor for each channel.
        bias: a term added to each channel.
        training: whether to use the statistics of this batch.
        momentum: the weight of the batch in the running statistics.
        eps: added to the variance.

    >>> gt.nn.functional.batch_norm(gt.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-0.999995],
            [ 0.999995]], dtype=float32)
    """
    if training and math.prod(input.shape[:1] + input.shape[2:]) == 1:
        raise ValueError(
            "batch_norm: expected more than 1 value per channel when training, but the input has "
            f"one value per channel: its shape is {input.shape}"
        )
    if eps < 0 or (training and eps == 0):
        raise ValueError(f"batch_norm: eps is {eps}, expected more than 0")
    if input.numel() == 0:
        return input.clone()
    return gt.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


@function(namespace=NN)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalize each channel of each sample (Ulyanov et al., 2016); parameters as for `batch_norm`.

    The running statistics are updated with the mean over all samples.

    >>> gt.nn.functional.instance_norm(gt.tensor([[[1.0, 3.0]]]))
    tensor([[[-0.999995,  0.999995]]], dtype=float32)
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    if input.ndim < 2 or math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "instance_norm: expected more than 1 spatial element when training, but the input has "
            f"one value per channel: its shape is {input.shape}"
        )
    axes = tuple(range(2, input.ndim))
    centered, mean, var = moments(wide("instance_norm", input), axes)
    count = math.prod(input.shape[2:])
    unbiased = var.mean(0).reshape(-1) * count / (count - 1)
    follow(momentum, (running_mean, mean.mean(0).reshape(-1)), (running_var, unbiased))
    weight, bias = (t if t is None else by_channel(t, input) for t in (weight, bias))
    return affine(centered * (var + eps).rsqrt(), weight, bias)._cast(input.dtype)


@function(namespace=NN)
@in_float32
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return x / (k + alpha * m)**beta, where m is the mean of squares over neighbouring channels.

    Args:
        input: a tensor of (samples, channels, ...).
        size: the number of channels in the mean; those beyond the first and last are zeros.
        alpha: the factor of the mean.
        beta: the exponent.
        k: the constant term (Krizhevsky et al., 2012).

    >>> gt.nn.functional.local_response_norm(gt.full((1, 1, 1), 2.0), 1, alpha=1.0, beta=1.0)
    tensor([[[0.4]]], dtype=float32)
    """
    if input.ndim < 3:
        raise ValueError(f"local_response_norm: input has shape {input.shape}, expected 3 axes")
    if input.numel() == 0:
        return input
    channels = input.shape[1]
    zeros = filled(input, (input.shape[0], size // 2, *input.shape[2:]), 0)
    padded = gt.cat([zeros, input * input, zeros], 1)
    total = padded.narrow(1, 0, channels)
    for shift in range(1, size):
        total = total + padded.narrow(1, shift, channels)
    return input / (total / size * alpha + k) ** beta
