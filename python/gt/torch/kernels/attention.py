"""Attention by PyTorch's overrideable operator: one instruction forward and one backward.

PyTorch's choice of an implementation only supports devices in C++, so the device also has a kernel
of `scaled_dot_product_attention` itself, for both inference and autograd.
"""

from __future__ import annotations

import math

import torch

from gt._gt import primitives
from gt.nn.functional.attention import attend
from gt.torch.kernels import kernel, raw

_aten = torch.ops.aten
_libraries: list[torch.library.Library] = []
_BACKENDS = torch.nn.attention.SDPBackend
#: Without float64: PyTorch has second derivatives of the plain operators only, which
#: `gradgradcheck` needs.
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@raw("_fused_sdp_choice")
def fused_sdp_choice(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
) -> int:
    """Return the backend: OVERRIDEABLE if the device supports the arguments, else MATH."""
    is_own = (
        torch._C._get_overrideable_sdp_enabled()
        # PyTorch has no batching rule (vmap) for the overrideable operator.
        and torch._C._functorch.peek_interpreter_stack() is None
        and dropout_p == 0
        and query.dtype in _DTYPES
        and query.dtype == key.dtype == value.dtype
        and query.dim() == key.dim() == value.dim() >= 3
        and _is_mask_of(query, key, attn_mask)
        and not (is_causal and attn_mask is not None)
        and _have_one_batch(query, key, value, enable_gqa)
    )
    return int((_BACKENDS.OVERRIDEABLE if is_own else _BACKENDS.MATH).value)


def _is_mask_of(query, key, mask) -> bool:
    """Return whether a mask can be added to the scores without conversion."""
    if mask is None:
        return True
    scores = (*query.shape[:-1], key.shape[-2])
    return (
        mask.dtype in (torch.bool, query.dtype)
        and not mask.requires_grad
        and 2 <= mask.dim() <= len(scores)
        and all(one in (1, n) for one, n in zip(mask.shape[::-1], scores[::-1], strict=False))
    )


def _have_one_batch(query, key, value, gqa) -> bool:
    """Return whether batch axes are equal; with `gqa`, query heads may share keys and values."""
    heads = key.shape[-3]
    shares = gqa and heads == value.shape[-3] and heads > 0 and query.shape[-3] % heads == 0
    axes = -3 if shares else -2
    return query.shape[:axes] == key.shape[:axes] == value.shape[:axes]


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
):
    """Compute attention by the overrideable operator, or by plain operators."""
    choice = fused_sdp_choice(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    if choice == _BACKENDS.OVERRIDEABLE.value:
        return _aten._scaled_dot_product_fused_attention_overrideable(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale
        )[0]
    _check(query, key, value, attn_mask)
    if not torch._C._get_math_sdp_enabled():
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found.\n  hint: the device "
            "cluster has sdpa_kernel([SDPBackend.OVERRIDEABLE, SDPBackend.MATH])"
        )
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = query.new_zeros(attn_mask.shape).masked_fill(~attn_mask, -math.inf)
    return _aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )[0]


def _check(query, key, value, mask) -> None:
    """Raise the errors that PyTorch raises before it chooses a backend."""
    given = {"query": query, "key": key, "value": value}
    if not query.dtype == key.dtype == value.dtype:
        found = ", ".join(f"{name}.dtype: {of.dtype}" for name, of in given.items())
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got {found} instead."
        )
    if min(of.dim() for of in given.values()) < 2:
        found = ", ".join(f"{name}.dim: {of.dim()}" for name, of in given.items())
        raise RuntimeError(
            "Expected query, key, and value to all be at least 2 dimensional, but got "
            f"{found} instead."
        )
    if mask is not None and mask.dtype not in (torch.bool, torch.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {mask.dtype} and query.dtype: {query.dtype} instead."
        )


def register() -> None:
    """Register the kernel of `scaled_dot_product_attention`, a composite on other devices."""
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    for key in ("PrivateUse1", "AutogradPrivateUse1"):
        library.impl("scaled_dot_product_attention", scaled_dot_product_attention, key)


# `pointwise`: the result has the memory layout of the query.
@kernel("_scaled_dot_product_fused_attention_overrideable", pointwise=True)
def attention(
    query,
    key,
    value,
    attn_bias=None,
    dropout_p=0.0,
    is_causal=False,
    return_debug_mask=False,
    *,
    scale=None,
):
    output, logsumexp = attend(query, key, value, attn_bias, is_causal, scale, gqa=True)
    # The operator also returns the offsets of packed sequences and the state of random numbers,
    # which are unused here; PyTorch requires tensors in their place.
    none = logsumexp
    return output, logsumexp, none, none, query.shape[-2], key.shape[-2], none, none, none


@kernel("_scaled_dot_product_fused_attention_overrideable_backward")
def attention_backward(
    grad_out,
    query,
    key,
    value,
    attn_bias,
    grad_input_mask,
    out,
    logsumexp,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    philox_seed,
    philox_offset,
    *,
    scale=None,
):
    scale = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    heads, own = query.shape[-3], key.shape[-3]
    given = (_repeated(of, heads) for of in (key, value))
    mask = 0.0 if attn_bias is None else attn_bias
    of_query, *others = primitives._attention_backward(
        grad_out, query, *given, mask, out, logsumexp, is_causal, scale
    )
    of_key, of_value = (_summed(of, own) for of in others)
    return of_query, of_key, of_value, None


def _repeated(given, heads):
    """Repeat each head so that there are `heads` of them."""
    *others, own, length, width = given.shape
    if own == heads:
        return given
    repeated = given.unsqueeze(-3).expand(*others, own, heads // own, length, width)
    return repeated.reshape(*others, heads, length, width)


def _summed(grad, own):
    """Sum the gradients of the query heads that share a head."""
    *others, heads, length, width = grad.shape
    if own == heads:
        return grad
    return grad.reshape(*others, own, heads // own, length, width).sum(-3)
