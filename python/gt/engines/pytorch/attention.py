"""Attention with PyTorch: by its fused CPU kernels where they are exact, else plain operations."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gt.engines.attention import lowerings

_PLAIN = lowerings(torch, torch.matmul, Tensor.to)
_forward: Callable[..., Any] = torch._scaled_dot_product_flash_attention_for_cpu
_DTYPES = (torch.float32, torch.float64)
#: The minimum number of keys. With fewer keys than a SIMD vector has floats, the kernel reduces
#: them one by one and loses NaNs.
_LEAST = 16
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def _is_fused(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> bool:
    """Return whether a fused kernel computes the exact result.

    With a mask it returns NaN where a query sees no key, and with few keys 0 instead of NaN.
    """
    if mask.__class__ is not float or mask or not query.is_cpu or query.dtype not in _DTYPES:
        return False
    wide, long, deep = query.shape, key.shape, value.shape
    return wide[-1] == long[-1] == deep[-1] and 0 not in wide and long[-2] >= _LEAST


def _folded(x: Tensor) -> Tensor:
    """Reshape a tensor to one batch axis and one axis of heads, as the kernels require."""
    return x.reshape(-1, 1, *x.shape[-2:])


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the weighted values, and the logsumexp of each query's scores."""
    if not _is_fused(query, key, value, mask):
        return _PLAIN["_attention"](query, key, value, mask, is_causal, scale)
    if query.ndim == 4:
        return _forward(query, key, value, 0.0, is_causal, scale=scale)
    operands = map(_folded, (query, key, value))
    output, logsumexp = _forward(*operands, 0.0, is_causal, scale=scale)
    return output.reshape(query.shape), logsumexp.reshape(query.shape[:-1])


def attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Any,
    output: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients with respect to query, key and value."""
    if not _is_fused(query, key, value, mask):
        given = grad, query, key, value, mask, output, logsumexp, is_causal, scale
        return _PLAIN["_attention_backward"](*given)
    operands = grad, query, key, value, output
    if query.ndim == 4:
        return _backward(*operands, logsumexp, 0.0, is_causal, scale=scale)
    row = logsumexp.reshape(-1, 1, query.shape[-2])
    made = _backward(*map(_folded, operands), row, 0.0, is_causal, scale=scale)
    return tuple(x.reshape(y.shape) for x, y in zip(made, (query, key, value), strict=True))


ATTENTION: dict[str, Callable[..., Any]] = {
    "_attention": attention,
    "_attention_backward": attention_backward,
}
