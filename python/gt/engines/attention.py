"""Attention in plain array operations, with the weights of all queries and keys in memory.

The weights are temporary: the forward pass only saves its output and the logsumexp of each query's
scores for the gradient.
"""

import math
from collections.abc import Callable
from typing import Any

from gt.engines.engine import Function


def lowerings(xp: Any, matmul: Function, cast: Callable[[Any, Any], Any]) -> dict[str, Function]:
    """Return the lowerings of attention and its gradient.

    Args:
        xp: The array module: `torch` or `jax.numpy`.
        matmul: Multiplies matrices in the compute dtype (float32 for 16-bit operands).
        cast: Converts a tensor to a dtype of the module.
    """

    def widened(x: Any) -> Any:
        return cast(x, xp.float32) if x.dtype in (xp.float16, xp.bfloat16) else x

    def scores_of(query: Any, key: Any, mask: Any, is_causal: bool, scale: float) -> Any:
        scores = matmul(query, key.swapaxes(-1, -2)) * scale
        if not hasattr(mask, "dtype"):
            scores = scores + mask
        elif mask.dtype == xp.bool:
            scores = xp.where(mask, scores, -math.inf)
        else:
            scores = scores + cast(mask, scores.dtype)
        if not is_causal:
            return scores
        seen = xp.tril(xp.ones_like(scores, dtype=xp.bool))
        return xp.where(seen, scores, -math.inf)

    def attention(
        query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float
    ) -> tuple[Any, Any]:
        wide = widened(query)
        scores = scores_of(wide, widened(key), attn_mask, is_causal, scale)
        if scores.shape[-1] == 0:
            scores = xp.full((*scores.shape[:-1], 1), -math.inf, dtype=wide.dtype)
            value = xp.zeros((*scores.shape[:-2], 1, value.shape[-1]), dtype=value.dtype)
        largest = xp.amax(scores, -1)[..., None]
        largest = xp.where(largest == -math.inf, xp.zeros_like(largest), largest)
        weights = xp.exp(scores - largest)
        total = weights.sum(-1)[..., None]
        unseen = total == 0
        total = xp.where(unseen, xp.ones_like(total), total)
        output = matmul(weights, widened(value)) / total
        output = xp.where(unseen, xp.zeros_like(output), output)
        logsumexp = xp.where(unseen, math.inf, largest + xp.log(total))[..., 0]
        return cast(output, query.dtype), logsumexp

    def backward(
        grad: Any,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        output: Any,
        logsumexp: Any,
        is_causal: bool,
        scale: float,
    ) -> tuple[Any, Any, Any]:
        dtypes = [x.dtype for x in (query, key, value)]
        grad, query, key, value, output = map(widened, (grad, query, key, value, output))
        scores = scores_of(query, key, attn_mask, is_causal, scale)
        weights = xp.exp(scores - logsumexp[..., None])
        centers = (grad * output).sum(-1)[..., None]
        scores = weights * (matmul(grad, value.swapaxes(-1, -2)) - centers) * scale
        grads = (
            matmul(scores, key),
            matmul(scores.swapaxes(-1, -2), query),
            matmul(weights.swapaxes(-1, -2), grad),
        )
        return tuple(map(cast, grads, dtypes))

    return {"_attention": attention, "_attention_backward": backward}
