"""Users who train something of their own beside, before or after the frozen model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import gt
import numpy as np
from gpt2 import GPT2
from gt import Tensor, nn
from gt.nn import functional as F

from users.base import (
    Work,
    batches,
    hidden,
    logits_of,
    losses_of,
    make_model,
    middle,
    on_output,
    parameter,
    plus,
    updated,
)

RANK, PROMPT, TEMPERATURE, BETA = 4, 4, 2.0, 0.5


def lora(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Train narrow products beside the attention, with a loss for difficult tokens.

    The loss is the focal loss (Lin et al., 2017): a token that is predicted well counts little.
    """
    width = model.config.n_embd
    adapters: list[Tensor] = []
    with ExitStack() as hooks:
        for block in model.transformer.h:
            down, up = parameter(width, RANK, scale=width**-0.5), parameter(RANK, 3 * width)
            hooks.enter_context(on_output(block.attn.c_attn, _product(down, up)))
            adapters += [down, up]
        optimizer = gt.optim.AdamW(adapters, lr=1e-2)
        for ids in batches(work):
            each = losses_of(model(ids), ids)
            yield updated(optimizer, ((1 - (-each).exp()) ** 2 * each).mean())


def _product(down: Tensor, up: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, output: output + x @ down @ up


def soft_prompt(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Train embeddings before the tokens, of which the model makes its predictions better."""
    prompt = parameter(PROMPT, model.config.n_embd, scale=0.02)
    optimizer = gt.optim.AdamW([prompt], lr=1e-2)
    for ids in batches(work):
        embedded = model.transformer.wte(ids)
        before = prompt.expand(len(ids), *prompt.shape)
        logits = logits_of(model, gt.cat([before, embedded], 1))
        yield updated(optimizer, losses_of(logits[:, PROMPT:], ids).mean())


def distillation(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Train a small model to predict what the large one does (Hinton et al., 2015)."""
    student = make_model(width=16, layers=1)
    optimizer = gt.optim.AdamW(student.parameters(), lr=1e-2)
    for ids in batches(work):
        with gt.no_grad():
            teacher = F.softmax(model(ids) / TEMPERATURE, -1).flatten(0, 1)
        ours = F.log_softmax(student(ids) / TEMPERATURE, -1).flatten(0, 1)
        yield updated(optimizer, F.kl_div(ours, teacher, reduction="batchmean") * TEMPERATURE**2)


def preference(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Train a bias in each block to prefer the text over a shuffled one (Rafailov et al., 2023)."""
    chance = np.random.default_rng(work.seed)
    biases = [parameter(model.config.n_embd) for _ in model.transformer.h]
    optimizer = gt.optim.AdamW(biases, lr=1e-2)
    for chosen in batches(work):
        shuffled = chosen[:, gt.from_numpy(chance.permutation(work.length))]
        ids = gt.cat([chosen, shuffled])
        with gt.no_grad():
            before = losses_of(model(ids), ids).sum(1)
        with ExitStack() as hooks:
            for block, bias in zip(model.transformer.h, biases, strict=True):
                hooks.enter_context(on_output(block, plus(bias)))
            gain = before - losses_of(model(ids), ids).sum(1)
        good, bad = gain.chunk(2)
        yield updated(optimizer, -F.logsigmoid(BETA * (good - bad)).mean())


def probing(model: GPT2, work: Work) -> Iterator[Tensor]:
    """Train a linear probe: do hidden states show whether a word ends after this token?"""
    probe = nn.Linear(model.config.n_embd, 1)
    optimizer = gt.optim.AdamW(probe.parameters(), lr=1e-2)
    for ids in batches(work):
        states = hidden(model, middle(model), ids)
        ends = (ids[:, 1:] <= ord(",")).float()
        scores = probe(states[:, :-1]).squeeze(-1)
        yield updated(optimizer, F.binary_cross_entropy_with_logits(scores, ends))
