"""Operations under the names of PyTorch's kernels: normalizations that return their statistics."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt import _gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import DType, Size
from gt.ops.batch_normalization import BatchNormalization
from gt.ops.registry import function
from gt.ops.sizes import filled


def _wide(name: str, input: Tensor) -> Tensor:
    """Return floats as float32 if they have 16 bits: squares of these overflow soon."""
    if not input.dtype.is_floating_point:
        raise TypeError(
            f"{name}: input must hold floats, this is {input.dtype.name}\n  hint: input.float()"
        )
    return input.float() if input.dtype.itemsize == 2 else input


def moments(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Return x - mean, the mean and the variance over axes, which are kept with length 1."""
    mean = x.mean(axes, keepdim=True)
    centered = x - mean
    return centered, mean, (centered * centered).mean(axes, keepdim=True)


def affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return weight * x + bias, without the ones that are None."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@function(autocast="float32")
def native_layer_norm(
    input: Tensor, normalized_shape: Size, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize the last axes; return the result, the means and 1 / sqrt(var + eps).

    >>> gt.native_layer_norm(gt.tensor([1.0, 3.0]), [2], None, None, 0.0)[0]
    tensor([-1.,  1.], dtype=float32)
    """
    result = normalized_rows(input, normalized_shape, weight, bias, eps)
    axes = tuple(range(-_rank(normalized_shape), 0))
    _, mean, var = moments(_wide("layer_norm", input), axes)
    kept = input.dtype if weight is None else weight.dtype
    return result, mean._cast(kept), (var + eps).rsqrt()._cast(kept)


def _rank(shape: Size) -> int:
    """Return the number of axes of a shape, which may be a single int."""
    return 1 if isinstance(shape, int) else len(shape)


def normalized_rows(
    input: Tensor, normalized_shape: Size, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Return only the first result of `native_layer_norm`."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or input.shape[max(input.ndim - len(shape), 0) :] != shape:
        raise ValueError(f"layer_norm: the last axes of shape {input.shape} are not {shape}")
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != shape:
            raise ValueError(f"layer_norm: {name} has shape {given.shape}, expected {shape}")
    x = _wide("layer_norm", input)
    factor, shift = (
        number if given is None else given._cast(x.dtype)
        for given, number in ((weight, 1.0), (bias, 0.0))
    )
    return primitives.layer_norm(x, factor, shift, len(shape), eps)._cast(input.dtype)


@function(autocast="float32")
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize groups of channels; return the result, the means and 1 / sqrt(var + eps).

    >>> gt.native_group_norm(gt.tensor([[1.0, 3.0]]), None, None, 1, 2, 1, 1, 0.0)[0]
    tensor([[-1.,  1.]], dtype=float32)
    """
    if group < 1 or C % group:
        raise ValueError(f"group_norm: {C} channels do not divide into {group} equal groups")
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != (C,):
            raise ValueError(f"group_norm: {name} has shape {given.shape}, expected ({C},)")
    grouped = _wide("group_norm", input).reshape(N, group, C // group * HxW)
    centered, mean, var = moments(grouped, (2,))
    scale = (var + eps).rsqrt()
    normal = (centered * scale).reshape(input.shape)
    weight, bias = (t if t is None else by_channel(t, input) for t in (weight, bias))
    kept = input.dtype if weight is None else weight.dtype
    mean, scale = (t.reshape(N, group)._cast(kept) for t in (mean, scale))
    return affine(normal, weight, bias)._cast(input.dtype), mean, scale


def by_channel(values: Tensor, input: Tensor) -> Tensor:
    """Reshape one value per channel so that it broadcasts to the input."""
    return values.reshape([-1] + [1] * (input.ndim - 2))


@function
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel (axis 1); return the result, the means and 1 / sqrt(var + eps).

    With `training`, the statistics are the batch's, and the running ones are updated in place:
    running * (1 - momentum) + batch * momentum, where the variance is divided by n - 1. Without,
    the running statistics are used, and the second and third results are empty.

    >>> gt.native_batch_norm(gt.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0)[0]
    tensor([[-1.],
            [ 1.]], dtype=float32)
    """
    _check_channels(
        input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var
    )
    x = _wide("batch_norm", input)
    dtype = input.dtype if weight is None else weight.dtype
    if training:
        axes = (0, *range(2, input.ndim))
        factor, shift = (
            filled(x, (1,) * x.ndim, value) if t is None else by_channel(t, x)[None]._cast(x.dtype)
            for t, value in ((weight, 1), (bias, 0))
        )
        result, mean, var = BatchNormalization.apply(x, factor, shift, axes, eps)
        count = math.prod(input.shape[axis] for axis in axes)
        unbiased = var.reshape(-1) * count / (count - 1 or math.nan)
        follow(momentum, (running_mean, mean.reshape(-1)), (running_var, unbiased))
        scale = (var + eps).rsqrt()
        kept = mean.reshape(-1), scale.reshape(-1)
    elif running_mean is None or running_var is None:
        raise ValueError("batch_norm: give running_mean and running_var, or training=True")
    else:
        centered = x - by_channel(running_mean, x)
        scale = (by_channel(running_var, x) + eps).rsqrt()
        weight, bias = (t if t is None else by_channel(t, x) for t in (weight, bias))
        result = affine(centered * scale, weight, bias)
        kept = x.reshape(-1)[:0], x.reshape(-1)[:0]
    return result._cast(input.dtype), *(t._cast(dtype) for t in kept)


@function
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *args: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `native_batch_norm`; running_mean and running_var may be missing, too.

    >>> x = gt.tensor([[1.0], [3.0]])
    >>> gt._native_batch_norm_legit(x, None, None, True, 0.1, 0.0)[1]
    tensor([2.], dtype=float32)
    """
    running = args[:-3] or (None, None)
    return gt.native_batch_norm(input, weight, bias, *running, *args[-3:])


@function
def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute `native_batch_norm` with training=True; the fourth result is empty.

    >>> x, zero, one = gt.tensor([[1.0], [3.0]]), gt.zeros(1), gt.ones(1)
    >>> gt._batch_norm_with_update(x, None, None, zero, one, 0.1, 0.0)[1]
    tensor([2.], dtype=float32)
    """
    results = gt.native_batch_norm(
        input, weight, bias, running_mean, running_var, True, momentum, eps
    )
    return *results, input.detach().reshape(-1)[:0]._cast(gt.uint8)


def _check_channels(input: Tensor, **given: Tensor | None) -> None:
    if input.ndim < 2:
        raise ValueError(f"batch_norm: input has shape {input.shape}, expected 2 axes or more")
    for name, values in given.items():
        if values is not None and values.shape != input.shape[1:2]:
            raise ValueError(
                f"batch_norm: {name} has shape {values.shape}, expected ({input.shape[1]},)"
            )


def follow(momentum: float, *statistics: tuple[Tensor | None, Tensor]) -> None:
    """Update running statistics in place: running * (1 - momentum) + batch * momentum.

    The updates are committed together: if part of the batch has failed, none of them happens.
    """
    kept = [running for running, _ in statistics if running is not None]
    if not kept:
        return
    begun = _gt.begin_step([{"params": kept}], {})
    with gt.no_grad():
        for running, value in statistics:
            if running is not None:
                moved = running * (1 - momentum) + value.detach() * momentum
                running._assign(moved._cast(running.dtype), "batch_norm")
    begun.commit({})


@function
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Return the gradient of dropout: the output's where the mask is True, times `scale`.

    >>> gt.native_dropout_backward(gt.ones(2), gt.tensor([True, False]), 2.0)
    tensor([2., 0.], dtype=float32)
    """
    return grad_output * mask * scale


@function
def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """Return the gradient of softmax, y (g - sum(g y)), from its output y and the gradient g of y.

    >>> gt._softmax_backward_data(gt.tensor([1.0, 0.0]), gt.tensor([0.5, 0.5]), 0, gt.float32)
    tensor([ 0.25, -0.25], dtype=float32)
    """
    grad, output = (_wide("_softmax_backward_data", t) for t in (grad_output, output))
    product = grad * output
    return (product - output * product.sum(dim, keepdim=True))._cast(input_dtype)


@function
def _safe_softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Return softmax along an axis, with zeros where all values along the axis are -inf.

    >>> gt._safe_softmax(gt.full((2,), float("-inf")), 0)
    tensor([0., 0.], dtype=float32)
    """
    nothing = (self == float("-inf")).all(dim, keepdim=True)
    chosen = gt.softmax(gt.where(nothing, 0, self), dim, dtype=dtype)
    return gt.where(nothing, 0, chosen)


@function
def _scaled_dot_product_flash_attention_for_cpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attend as `scaled_dot_product_attention`; also return log(sum(exp(scores))) of each query.

    >>> x = gt.zeros(1, 1, 1, 2)
    >>> gt._scaled_dot_product_flash_attention_for_cpu(x, x, x)[1]
    tensor([[[0.]]], dtype=float32)
    """
    from gt.nn.functional.attention import attend

    if dropout_p:
        name = "_scaled_dot_product_flash_attention_for_cpu"
        raise ValueError(f"{name}: dropout_p is {dropout_p}, expected 0")
    result, logsumexp = attend(query, key, value, attn_mask, is_causal, scale)
    logsumexp = logsumexp.detach()
    return result, gt.where(logsumexp == float("inf"), float("-inf"), logsumexp)
