"""Text generation with a language model: a cache of keys and values, and sampling of tokens.

All shapes are the same in each step: the cache is allocated for the whole sequence, and positions
that are not yet written are masked. So each step is the same sequence of operations, which GT sends
and runs as one plan (see docs/hot-paths.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import gt
from gt import Tensor
from gt.nn import functional as F

#: The number of steps between checks whether all sequences have ended; a check waits for results.
LOOK_EVERY = 16


class Cache:
    """Keys and values of each layer for all positions of a batch of sequences.

    Args:
        layers: the number of layers.
        shape: (batch, key heads, length of the whole sequence, width of a head).
        attention_mask: (batch, length of the prompt): 0 for padding, which is on the left.
        dtype: the dtype of keys and values.
    """

    def __init__(
        self,
        layers: int,
        shape: tuple[int, int, int, int],
        attention_mask: Tensor | None = None,
        dtype: gt.dtype = gt.float32,
    ):
        batch, _, length, _ = shape
        with gt.signal.context("cache"):
            self.keys = [gt.zeros(shape, dtype=dtype) for _ in range(layers)]
            self.values = [gt.zeros(shape, dtype=dtype) for _ in range(layers)]
        self.used = 0
        self.places = gt.arange(length)
        self.padding = self.given = None
        if attention_mask is not None:
            later = gt.ones(batch, length - attention_mask.shape[1], dtype=gt.bool)
            self.given = gt.cat([attention_mask != 0, later], 1)
            self.padding = (attention_mask == 0).sum(1, keepdim=True)

    def extend(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values (batch, heads, queries, width) of a layer; return all of them."""
        new = slice(self.used, self.used + key.shape[2])
        self.keys[layer][:, :, new] = key
        self.values[layer][:, :, new] = value
        return self.keys[layer], self.values[layer]


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Compute grouped-query attention; it is causal without a mask.

    Args:
        query: (batch, heads, queries, width).
        key: (batch, key heads, keys, width).
        value: (batch, key heads, keys, width).
        mask: (batch or 1, 1, queries, keys): True for keys that are attended to.
    """
    if mask is None or query.shape[2] > 1:
        return F.scaled_dot_product_attention(
            query, key, value, mask, is_causal=mask is None, enable_gqa=True
        )
    # With a single query, the heads that share keys become queries, so keys are not repeated.
    batch, _, _, width = query.shape
    grouped = query.reshape(batch, key.shape[1], -1, width)
    return F.scaled_dot_product_attention(grouped, key, value, mask).reshape(query.shape)


def positions_and_mask(
    length: int, attention_mask: Tensor | None = None, cache: Cache | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return the positions of the next tokens (batch or 1, length), and their attention mask.

    Positions count from the first token that is not padding. The mask (batch or 1, 1, length, keys)
    is None if it would be the same as `is_causal=True`.
    """
    if cache is not None:
        places, given, padding = cache.places, cache.given, cache.padding
    else:
        places, given, padding = gt.arange(length), None, None
        if attention_mask is not None:
            given = attention_mask != 0
            padding = (attention_mask == 0).sum(1, keepdim=True)
    start = 0 if cache is None else cache.used
    queries = gt.arange(length) + start
    positions = queries[None] if padding is None else (queries - padding).clamp(min=0)
    if cache is None and given is None:
        return positions, None
    mask = (places <= queries[:, None])[None, None]
    return positions, mask if given is None else mask & given[:, None, None]


def filter_logits(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return scaled logits, with -inf for tokens that must not be chosen.

    Args:
        logits: the logits of the next token (batch, vocabulary).
        temperature: the divisor of the logits.
        top_k: the number of most likely tokens to keep, and all that tie with the last of them.
        top_p: keep the smallest set of most likely tokens whose probabilities sum to this or more.
    """
    logits = logits / temperature
    if top_k is not None:
        least = logits.topk(min(top_k, logits.shape[-1]), -1).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    if top_p is not None and top_p < 1:
        ordered, order = logits.sort(-1)
        removed = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
        removed[:, -1:] = False
        logits = logits.masked_fill(removed.scatter(1, order, removed), float("-inf"))
    return logits


def choose(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return the token at which the cumulative probability exceeds a uniform number, for each row.

    >>> choose(gt.tensor([[0.2, 0.5, 0.3]]), gt.tensor([0.6])).tolist()
    [1]
    """
    sums = probabilities.double().cumsum(-1)
    return (sums <= uniforms[:, None] * sums[:, -1:]).sum(-1)


@gt.no_grad()
def generate(
    model: gt.nn.Module,
    ids: Tensor,
    max_new_tokens: int,
    attention_mask: Tensor | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    uniforms: Tensor | None = None,
    eos_token_id: int | Sequence[int] | None = None,
    pad_token_id: int = 0,
) -> Tensor:
    """Return sequences of tokens with their continuations (batch, length + new).

    Args:
        model: has `make_cache(batch, length, attention_mask)`, and is called with ids and `cache`.
        ids: (batch, length), padded on the left.
        max_new_tokens: the largest number of tokens to add.
        attention_mask: (batch, length): 0 for padding.
        temperature: 0 for the most likely token; larger values make unlikely tokens likelier.
        top_k: see `filter_logits`.
        top_p: see `filter_logits`.
        uniforms: (batch, max_new_tokens) numbers in [0, 1) for sampling; random by default.
        eos_token_id: the tokens that end a sequence.
        pad_token_id: the token that fills up sequences that end before others.
    """
    _check(ids, max_new_tokens, attention_mask, temperature, top_k, top_p, uniforms)
    batch, length = ids.shape
    if uniforms is None and temperature > 0:
        uniforms = gt.rand(batch, max_new_tokens, dtype=gt.float64)
    ends = [eos_token_id] if isinstance(eos_token_id, int) else list(eos_token_id or [])
    cache = model.make_cache(batch, length + max_new_tokens, attention_mask)
    going = gt.ones(batch, dtype=gt.bool)
    tokens, token = [ids], ids
    for step in range(max_new_tokens):
        logits = model(token, cache=cache)[:, -1]
        if uniforms is not None and temperature > 0:
            chances = filter_logits(logits, temperature, top_k, top_p).softmax(-1)
            new = choose(chances, uniforms[:, step])
        else:
            new = logits.argmax(-1)
        if ends:
            new = gt.where(going, new, pad_token_id)
            for end in ends:
                going = going & (new != end)
        token = new[:, None]
        tokens.append(token)
        if ends and step % LOOK_EVERY == LOOK_EVERY - 1 and not going.any():
            break
    result = gt.cat(tokens, 1)
    return _without_tail(result, length, ends) if ends else result


def _check(
    ids: Tensor,
    count: int,
    attention_mask: Tensor | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    uniforms: Tensor | None,
) -> None:
    """Raise ValueError for an invalid argument of `generate`."""
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise ValueError(f"generate: ids have shape {ids.shape}, expected (batch, length)")
    if attention_mask is not None and attention_mask.shape != ids.shape:
        raise ValueError(
            f"generate: attention_mask has shape {attention_mask.shape}, expected {ids.shape}"
        )
    if count < 1 or temperature < 0:
        raise ValueError(
            f"generate: max_new_tokens={count} and temperature={temperature}, "
            "expected 1 or more, and 0 or more"
        )
    if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
        raise ValueError(
            f"generate: top_k={top_k} and top_p={top_p}, expected 1 or more, and more than 0 to 1"
        )
    if temperature == 0 and not (top_k is None and top_p is None and uniforms is None):
        raise ValueError("generate: temperature=0 samples nothing: omit top_k, top_p and uniforms")
    if uniforms is not None and uniforms.shape != (len(ids), count):
        raise ValueError(
            f"generate: uniforms have shape {uniforms.shape}, expected {(len(ids), count)}"
        )


def _without_tail(ids: Tensor, length: int, ends: list[int]) -> Tensor:
    """Return ids without the columns after the end of the longest sequence."""
    is_end = gt.isin(ids[:, length:], gt.tensor(ends, dtype=ids.dtype)).long()
    have_all_ended = is_end.cumsum(1).clamp(max=1).amin(0)
    tail = max(have_all_ended.sum().item() - 1, 0)
    return ids[:, : ids.shape[1] - tail]
