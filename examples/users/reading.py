"""Users who train nothing: they read the model, and intervene in what it computes."""

from __future__ import annotations

from collections.abc import Iterator

import gt
from gpt2 import GPT2
from gt import Tensor
from text import encode

from users.base import (
    LONGEST,
    Work,
    batches,
    hidden,
    logits_of,
    losses_of,
    middle,
    on_input,
    on_output,
    plus,
)

#: Strengths of steering, and the points between nothing and a text at which gradients are taken.
STRENGTHS, POINTS = (0.0, 0.5, 1.0, 2.0, 4.0), 8


@gt.no_grad()
def evaluation(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Compute the perplexity of all batches so far."""
    total = gt.zeros(())
    for count, ids in enumerate(batches(work), 1):
        total = total + losses_of(model(ids), ids).mean()
        yield (total / count).exp()


@gt.no_grad()
def generation(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Generate the most likely text token by token, from new prompts when sequences are full."""
    for ids in batches(work):
        cache = model.make_cache(len(ids), LONGEST)
        token = ids
        while cache.used + token.shape[1] <= LONGEST:
            token = model(token, cache=cache)[:, -1:].argmax(-1)
            yield token.sum()


def attribution(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Attribute a prediction to tokens by integrated gradients (Sundararajan et al., 2017).

    Yields how much of the prediction the tokens explain so far.
    """
    for ids in batches(work):
        embedded = model.transformer.wte(ids)
        likely = logits_of(model, embedded)[:, -1].argmax(-1)
        explained = gt.zeros(ids.shape)
        for point in range(POINTS):
            x = (embedded * ((point + 0.5) / POINTS)).requires_grad_()
            scores = logits_of(model, x)[:, -1]
            scores.gather(1, likely[:, None]).sum().backward()
            assert x.grad is not None
            explained = explained + (x.grad * embedded).sum(-1) / POINTS
            yield explained.sum()


@gt.no_grad()
def steering(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Push hidden states from small letters to capitals; yield how likely these are then."""
    block = middle(model)
    small, capital = (hidden(model, block, encode(text)) for text in ("tyger", "TYGER"))
    direction = (capital - small).mean((0, 1))
    for step, ids in enumerate(batches(work)):
        push = direction * STRENGTHS[step % len(STRENGTHS)]
        with on_output(block, plus(push)):
            likely = model(ids).softmax(-1)
        yield likely[..., ord("A") : ord("Z") + 1].sum(-1).mean()


@gt.no_grad()
def patching(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Carry one head's activations from a text into its reverse; yield what the loss gains."""
    heads = model.config.n_head
    width = model.config.n_embd // heads
    blocks = model.transformer.h
    for step, ids in enumerate(batches(work)):
        place = blocks[step // heads % len(blocks)].attn.c_proj
        part = slice(step % heads * width, (step % heads + 1) * width)
        found: list[Tensor] = []

        def keep(x: Tensor, found: list[Tensor] = found) -> Tensor:
            found.append(x)
            return x

        def patch(x: Tensor, found: list[Tensor] = found, part: slice = part) -> Tensor:
            return gt.cat([x[..., : part.start], found[0][..., part], x[..., part.stop :]], -1)

        reverse = ids.flip(1)
        with on_input(place, keep):
            model(ids)
        with on_input(place, patch):
            patched = losses_of(model(reverse), reverse).mean()
        yield losses_of(model(reverse), reverse).mean() - patched
