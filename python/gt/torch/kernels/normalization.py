"""Softmax and normalizations, with the statistics that PyTorch saves for their derivatives."""

from __future__ import annotations

import gt
from gt._gt import primitives
from gt.nn import functional as F
from gt.torch.kernels import kernel
from gt.torch.kernels.tape import vjp


@kernel("_softmax")
def softmax(self, dim, half_to_float):
    return gt.softmax(self.float() if half_to_float else self, dim)


@kernel("_log_softmax")
def log_softmax(self, dim, half_to_float):
    return gt.log_softmax(self.float() if half_to_float else self, dim)


@kernel("softmax.int_out")
def softmax_as(self, dim, dtype=None):
    return gt.softmax(self, dim, dtype=dtype)


@kernel("log_softmax.int_out")
def log_softmax_as(self, dim, dtype=None):
    return gt.log_softmax(self, dim, dtype=dtype)


@kernel("_softmax_backward_data")
def softmax_backward(grad_output, output, dim, input_dtype):
    return primitives.softmax_backward(grad_output, output, dim).to(input_dtype)


@kernel("_log_softmax_backward_data")
def log_softmax_backward(grad_output, output, dim, input_dtype):
    return primitives.log_softmax_backward(grad_output, output, dim).to(input_dtype)


def _statistics(input, axes, eps):
    """Return the mean and 1 / standard deviation over some axes, in at least float32."""
    if input.dtype in (gt.float16, gt.bfloat16):
        input = input.float()
    mean = input.mean(axes, keepdim=True)
    variance = input.var(axes, correction=0, keepdim=True)
    return mean, gt.rsqrt(variance + eps)


def _grad_of_input(scaled, normal, rstd, axes):
    """Return the gradient of the input; `scaled` is the gradient of the normalized values."""
    along = (scaled * normal).mean(axes, keepdim=True)
    return (scaled - scaled.mean(axes, keepdim=True) - normal * along) * rstd


def _cast(value, dtype, wanted=True):
    return value.to(dtype) if wanted and value is not None else None


@kernel("_weight_norm_interface_backward")
def weight_norm_backward(grad_w, saved_v, saved_g, saved_norms, dim):
    axes = [axis for axis in range(saved_v.ndim) if axis != dim % saved_v.ndim]
    direction = saved_v / saved_norms
    along = (grad_w * direction).sum(axes, keepdim=True)
    return (grad_w - direction * along) * (saved_g / saved_norms), along


@kernel("native_layer_norm")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    axes = list(range(input.ndim - len(normalized_shape), input.ndim))
    mean, rstd = _statistics(input, axes, eps)
    return F.layer_norm(input, normalized_shape, weight, bias, eps), mean, rstd


@kernel("native_layer_norm_backward")
def native_layer_norm_backward(
    grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
):
    outer = list(range(input.ndim - len(normalized_shape)))
    axes = list(range(len(outer), input.ndim))
    dtype = input.dtype
    grad, input = grad_out.to(mean.dtype), input.to(mean.dtype)
    normal = (input - mean) * rstd
    scaled = grad if weight is None else grad * weight.to(mean.dtype)
    return (
        _cast(_grad_of_input(scaled, normal, rstd, axes), dtype, output_mask[0]),
        _summed(grad * normal, outer, dtype) if output_mask[1] else None,
        _summed(grad, outer, dtype) if output_mask[2] else None,
    )


def _summed(values, axes, dtype):
    return (values.sum(axes) if axes else values).to(dtype)


@kernel("native_group_norm_backward")
def native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    grad = grad_out.reshape(N, C, HxW)
    rows = input.reshape(N, group, C // group * HxW)
    mean, rstd = mean.reshape(N, group, 1), rstd.reshape(N, group, 1)
    normal = (rows - mean) * rstd
    scaled = grad if weight is None else grad * weight.reshape(1, C, 1)
    found = _grad_of_input(scaled.reshape(rows.shape), normal, rstd, [2])
    return (
        found.reshape(input.shape) if output_mask[0] else None,
        (grad * normal.reshape(grad.shape)).sum([0, 2]) if output_mask[1] else None,
        grad.sum([0, 2]) if output_mask[2] else None,
    )


def _channels(input):
    """Return all axes except the channels, and the shape that broadcasts a per-channel tensor."""
    axes = [axis for axis in range(input.ndim) if axis != 1]
    return axes, (1, -1, *[1] * (input.ndim - 2))


def _batch_norm(input, weight, bias, mean, rstd):
    _, shape = _channels(input)
    normal = (input - mean.reshape(shape)) * rstd.reshape(shape)
    if weight is not None:
        normal = normal * weight.reshape(shape)
    if bias is not None:
        normal = normal + bias.reshape(shape)
    return normal.to(input.dtype)


def batch_statistics(input, eps):
    """Return the mean, 1 / standard deviation and unbiased variance of each channel."""
    axes, _ = _channels(input)
    mean, rstd = _statistics(input, axes, eps)
    count = input.numel() // input.shape[1]
    wide = input.float() if input.dtype in (gt.float16, gt.bfloat16) else input
    variance = wide.var(axes, correction=0) * (count / max(count - 1, 1))
    return mean.reshape(-1), rstd.reshape(-1), variance


def batch_norm_trained(input, weight, bias, eps):
    mean, rstd, variance = batch_statistics(input, eps)
    return _batch_norm(input, weight, bias, mean, rstd), mean, rstd, variance


def batch_norm_evaluated(input, weight, bias, running_mean, running_var, eps):
    return _batch_norm(input, weight, bias, running_mean, gt.rsqrt(running_var + eps))


@kernel("native_batch_norm_backward")
def native_batch_norm_backward(
    grad_out,
    input,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_invstd,
    train,
    eps,
    output_mask,
):
    axes, shape = _channels(input)
    if train:
        mean, rstd = save_mean, save_invstd
    else:
        mean, rstd = running_mean, gt.rsqrt(running_var + eps)
    dtype = input.dtype
    grad, input = grad_out.to(mean.dtype), input.to(mean.dtype)
    normal = (input - mean.reshape(shape)) * rstd.reshape(shape)
    scaled = grad if weight is None else grad * weight.reshape(shape)
    if train:
        found = _grad_of_input(scaled, normal, rstd.reshape(shape), axes)
    else:
        found = scaled * rstd.reshape(shape)
    return (
        _cast(found, dtype, output_mask[0]),
        (grad * normal).sum(axes) if output_mask[1] else None,
        grad.sum(axes) if output_mask[2] else None,
    )


@kernel("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None
):
    return gt._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )


@kernel("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_backward(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    dropout_p,
    is_causal,
    *,
    attn_mask=None,
    scale=None,
):
    def forward(query, key, value):
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal=is_causal, scale=scale
        )

    return vjp(forward, grad_out, query, key, value)
