"""Multi-head attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import gt
from gt._gt import Tensor
from gt.ops.registry import function
from gt.ops.sizes import filled

from .attention import scaled_dot_product_attention
from .common import NN, in_float32
from .dropouts import dropout
from .linears import linear


@function(namespace=NN, autocast="inside")
@in_float32
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the result of multi-head attention, and the attention weights or None.

    Query, key and value are projected and split into heads; the heads' results are concatenated and
    projected.

    Args:
        query: (queries, samples, width) or (queries, width).
        key: (keys, samples, width) or (keys, width).
        value: in the layout of the key.
        embed_dim_to_check: the width of the query.
        num_heads: the number of heads; the width is a multiple of it.
        in_proj_weight: the projections of query, key and value, concatenated.
        in_proj_bias: the biases of these projections, concatenated.
        bias_k: a further key, (1, 1, width).
        bias_v: the value of `bias_k`.
        add_zero_attn: whether to append a key and value of zeros.
        dropout_p: the probability of dropping an attention weight, with `training`.
        out_proj_weight: the projection of the result.
        out_proj_bias: the bias of this projection.
        training: whether to drop attention weights.
        key_padding_mask: (samples, keys): True at keys to ignore, or floats added to the scores.
        need_weights: whether to return the attention weights.
        attn_mask: (queries, keys) or (samples * heads, queries, keys): True at keys that a query
            ignores, or floats added to the scores.
        use_separate_proj_weight: whether to use the following three projections.
        q_proj_weight: the query's projection.
        k_proj_weight: the key's projection.
        v_proj_weight: the value's projection.
        static_k: replaces the projected key: (samples * heads, keys, width of a head).
        static_v: replaces the projected value, in the same layout.
        average_attn_weights: whether the returned weights are averaged over heads.
        is_causal: a hint that `attn_mask` is the causal mask.

    >>> x, eye = gt.ones(1, 2), gt.eye(2)
    >>> gt.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, gt.cat([eye] * 3), None, None, None, False, 0.0, eye, None
    ... )[1]
    tensor([[1.]], dtype=float32)
    """
    if is_causal and attn_mask is None:
        raise ValueError("multi_head_attention_forward: is_causal is a hint: give attn_mask, too")
    single = query.ndim == 2
    if single:
        query, key, value = (t.unsqueeze(1) for t in (query, key, value))
    _check_inputs(query, key, value, embed_dim_to_check, num_heads)
    _check_masks(query, key, num_heads, attn_mask, key_padding_mask)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    weights = _projections(in_proj_weight, separate)
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = map(linear, (query, key, value), weights, biases)
    k, v = (_with_row(*of) for of in ((k, bias_k), (v, bias_v)))
    q, k, v = (_split_heads(t, num_heads) for t in (q, k, v))
    k, v = (t if static is None else static for t, static in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (gt.cat([t, filled(t, (t.shape[0], 1, t.shape[2]), 0)], 1) for t in (k, v))
    mask = _merged_mask(attn_mask, key_padding_mask, q, k.shape[1], num_heads)
    length, samples, width = query.shape
    if need_weights:
        scores = q * (1 / math.sqrt(q.shape[-1])) @ k.mT
        scores = scores if mask is None else scores + mask
        attention = dropout(gt.softmax(scores, -1), dropout_p, training)
        heads = attention @ v
    else:
        heads = scaled_dot_product_attention(q, k, v, mask, dropout_p if training else 0.0)
    heads = heads.transpose(0, 1).reshape(length, samples, width)
    out = linear(heads, out_proj_weight, out_proj_bias)
    out = out.squeeze(1) if single else out
    if not need_weights:
        return out, None
    attention = attention.reshape(samples, num_heads, length, k.shape[1])
    attention = attention.mean(1) if average_attn_weights else attention
    return out, attention.squeeze(0) if single else attention


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int) -> None:
    name = "multi_head_attention_forward"
    if not query.ndim == key.ndim == value.ndim == 3:
        raise ValueError(f"{name}: query, key and value must have 2 axes, or 3 with samples")
    if query.shape[-1] != width or width % heads:
        raise ValueError(
            f"{name}: query has width {query.shape[-1]}, expected embed_dim_to_check, {width}, "
            f"a multiple of num_heads, {heads}"
        )
    if key.shape[:2] != value.shape[:2]:
        raise ValueError(f"{name}: key and value have shapes {key.shape} and {value.shape}")


def _projections(
    joint: Tensor | None, separate: Sequence[Tensor | None] | None
) -> Sequence[Tensor]:
    """Return the projections of query, key and value: separate ones, or the parts of one weight."""
    given = [weight for weight in separate or (joint,) if weight is not None]
    if len(given) < len(separate or (joint,)):
        raise ValueError(
            "multi_head_attention_forward: a projection is None: give in_proj_weight, or, with "
            "use_separate_proj_weight, q_proj_weight, k_proj_weight and v_proj_weight"
        )
    return given if separate else given[0].chunk(3)


def _check_masks(
    query: Tensor, key: Tensor, heads: int, mask: Tensor | None, padding: Tensor | None
) -> None:
    (queries, samples), keys = query.shape[:2], key.shape[0]
    fitting = ((queries, keys), (samples * heads, queries, keys))
    if mask is not None and mask.shape not in fitting:
        raise ValueError(
            f"multi_head_attention_forward: attn_mask has shape {mask.shape}, expected "
            f"{fitting[0]} or {fitting[1]}"
        )
    if padding is not None and padding.numel() != samples * keys:
        raise ValueError(
            f"multi_head_attention_forward: key_padding_mask has shape {padding.shape}, expected "
            f"{(samples, keys)}"
        )


def _with_row(given: Tensor, row: Tensor | None) -> Tensor:
    """Append a key or value to those of each sample, if given."""
    return given if row is None else gt.cat([given, row.expand(1, *given.shape[1:])])


def _split_heads(given: Tensor, heads: int) -> Tensor:
    """Return the heads as (samples * heads, length, width of a head)."""
    length, samples, width = given.shape
    return given.reshape(length, samples * heads, width // heads).transpose(0, 1)


def _merged_mask(
    mask: Tensor | None, padding: Tensor | None, query: Tensor, keys: int, heads: int
) -> Tensor | None:
    """Return the sum of both masks as floats; keys beyond a mask are not masked."""
    mask, padding = (_added(t, query, keys) for t in (mask, padding))
    if padding is not None:
        padding = padding.reshape(-1, 1, 1, keys).expand(-1, heads, 1, keys).reshape(-1, 1, keys)
    return padding if mask is None else mask if padding is None else mask + padding


def _added(mask: Tensor | None, query: Tensor, keys: int) -> Tensor | None:
    """Return a mask as floats that are added to scores, with zeros for further keys."""
    if mask is None:
        return None
    if mask.dtype == gt.bool:
        mask = gt.where(mask, float("-inf"), 0.0)._cast(query.dtype)
    elif not mask.dtype.is_floating_point:
        raise TypeError(
            f"multi_head_attention_forward: a mask has dtype {mask.dtype.name}, expected bool or "
            "floats"
        )
    further = filled(mask, (*mask.shape[:-1], keys - mask.shape[-1]), 0)
    return gt.cat([mask, further], -1) if further.shape[-1] else mask
