"""Attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, primitives
from gt.ops.registry import function

from .common import NN, in_float32
from .dropouts import dropout


@function(namespace=NN, autocast="lower")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(scale * query @ key.mT + mask) @ value; zeros for a query that sees no key.

    Args:
        query: (..., queries, width).
        key: (..., keys, width).
        value: (..., keys, width of the result).
        attn_mask: bools that are True at the keys each query sees, or floats added to the scores.
        dropout_p: the probability of dropping an attention weight.
        is_causal: whether query i sees only the keys up to i.
        scale: the factor of the scores, 1 / sqrt(width) by default.
        enable_gqa: whether keys and values may have fewer heads, along axis -3, than queries.

    >>> one, two = gt.ones(1, 1, 2), gt.tensor([[[1.0], [3.0]]])
    >>> gt.nn.functional.scaled_dot_product_attention(one, gt.ones(1, 2, 2), two)
    tensor([[[2.]]], dtype=float32)
    """
    if dropout_p == 0 and query.dtype.is_floating_point and query.dtype == key.dtype == value.dtype:
        return attend(query, key, value, attn_mask, is_causal, scale, enable_gqa)[0]
    return _with_weights(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, gqa=enable_gqa
    )


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return attention computed without storing weights, and each query's log(sum(exp(scores))).

    The latter is inf for a query that sees no key.
    """
    if mask is None and _is_plain(query.shape, key.shape, value.shape):
        return primitives._attention(query, key, value, 0.0, is_causal, _scale_of(query, scale))
    _check_attention(query, key, value, mask, is_causal)
    key, value = (_heads_of(query, given, gqa) for given in (key, value))
    given = (query, key, value) if mask is None else (query, key, value, mask)
    batch = gt.broadcast_shapes(*(t.shape[:-2] for t in given))
    operands = (
        t if t.shape[:-2] == batch else t.expand(*batch, *t.shape[-2:]) for t in (query, key, value)
    )
    number = 0.0 if mask is None else mask
    return primitives._attention(*operands, number, is_causal, _scale_of(query, scale))


def _is_plain(query: tuple[Any, ...], key: tuple[Any, ...], value: tuple[Any, ...]) -> bool:
    """Return whether batch axes are equal, and key and value have one shape and query's width."""
    is_one_batch = len(query) == len(key) > 1 and query[:-2] == key[:-2]
    return is_one_batch and key == value and query[-1] == key[-1]


def _check_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool
) -> None:
    _check_scores(query, key, mask, is_causal)
    name = "scaled_dot_product_attention"
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"{name}: key has width {key.shape[-1]}, expected query's, {query.shape[-1]}"
        )
    if value.ndim < 2 or value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"{name}: value has shape {value.shape}, expected one for each of {key.shape[-2]} keys"
        )
    if mask is None:
        return
    queries, keys = query.shape[-2], key.shape[-2]
    lengths = zip(mask.shape[:-3:-1], (keys, queries), strict=False)
    if any(given not in (1, length) for given, length in lengths):
        raise ValueError(
            f"{name}: attn_mask has shape {mask.shape}, expected (..., {queries}, {keys})"
        )


@in_float32
def _with_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None,
    gqa: bool,
) -> Tensor:
    """Return attention from the full matrix of weights, some of which may be dropped."""
    scores = _scores_of(query, key, mask, is_causal, scale, gqa)
    weights = dropout(gt._safe_softmax(scores, -1), dropout_p)
    return weights @ _heads_of(query, value, gqa)


def _scores_of(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    gqa: bool = False,
) -> Tensor:
    """Return the score of each query and key: -inf for a key that the query does not see."""
    _check_scores(query, key, mask, is_causal)
    scores = query @ _heads_of(query, key, gqa).mT * _scale_of(query, scale)
    if is_causal:
        queries, keys = (arange_beside(query, n) for n in scores.shape[-2:])
        mask = queries.unsqueeze(-1) >= keys
    if mask is None:
        return scores
    return gt.where(mask, scores, float("-inf")) if mask.dtype == gt.bool else scores + mask


def _scale_of(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale


def _check_scores(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> None:
    name = "scaled_dot_product_attention"
    if min(query.ndim, key.ndim) < 2:
        raise ValueError(
            f"{name}: query and key have shapes {query.shape} and {key.shape}, "
            "expected 2 axes or more"
        )
    if is_causal and mask is not None:
        raise ValueError(f"{name}: give attn_mask or is_causal, not both")
    if mask is not None and mask.dtype != gt.bool and not mask.dtype.is_floating_point:
        raise TypeError(f"{name}: attn_mask is of dtype {mask.dtype.name}, expected bool or floats")


def _heads_of(query: Tensor, given: Tensor, gqa: bool) -> Tensor:
    """Repeat heads to as many as the query has."""
    if not gqa or query.ndim < 3 or given.ndim < 3 or query.shape[-3] == given.shape[-3]:
        return given
    heads, own = query.shape[-3], given.shape[-3]
    if own == 0 or heads % own:
        raise ValueError(
            f"scaled_dot_product_attention: {heads} heads of queries are not a multiple of {own}"
        )
    *others, length, width = given.shape
    repeated = given.unsqueeze(-3).expand(*others, heads // own, length, width)
    return repeated.reshape(*others[:-1], heads, length, width)
