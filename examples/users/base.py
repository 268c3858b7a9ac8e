"""The model that is shared, the data that its users read, and how they reach into it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gt
import numpy as np
from gpt2 import GPT2, Config
from gt import Tensor, nn
from gt.nn import functional as F
from text import TEXT

#: Tokens are ASCII codes, and no sequence is longer than this.
VOCABULARY, LONGEST = 128, 64


@dataclass(frozen=True)
class Work:
    """The seed of a user's work, and the sequences that a step reads: their number and length."""

    seed: int = 0
    batch: int = 2
    length: int = 16


#: A kind of work: yields one number for each step on a frozen model, without end.
Kind = Callable[[GPT2, Work], Iterator[Tensor]]


def make_model(width: int, layers: int) -> GPT2:
    """Return a new language model of characters, without dropout."""
    heads = max(2, width // 64)
    return GPT2(Config(VOCABULARY, LONGEST, width, layers, heads, None, 0.0, 0.0, 0.0))


def batches(work: Work) -> Iterator[Tensor]:
    """Yield tokens (batch, length) of random parts of the text, without end."""
    codes = np.frombuffer(TEXT.encode("ascii"), np.uint8).astype(np.int64)
    chance = np.random.default_rng(work.seed)
    while True:
        starts = chance.integers(0, len(codes) - work.length, work.batch)
        yield gt.from_numpy(codes[starts[:, None] + np.arange(work.length)])


def losses_of(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the cross entropy (batch, length - 1) of each token, predicted from those before."""
    scores, targets = logits[:, :-1].flatten(0, 1), ids[:, 1:]
    return F.cross_entropy(scores, targets.flatten(), reduction="none").view(*targets.shape)


def logits_of(model: GPT2, embedded: Tensor) -> Tensor:
    """Return logits of embeddings (batch, length, width), which take the place of tokens."""
    body = model.transformer
    x = embedded + body.wpe(gt.arange(embedded.shape[1]))
    for block in body.h:
        x = block(x, None, None)
    return model.lm_head(body.ln_f(x))


def parameter(*shape: int, scale: float = 0.0) -> Tensor:
    """Return a tensor to be trained: random, or zeros without a scale."""
    return (gt.randn(shape) * scale).requires_grad_()


def updated(optimizer: gt.optim.Optimizer, loss: Tensor) -> Tensor:
    """Take a step of training; return the loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


@contextmanager
def on_output(
    module: nn.Module, change: Callable[[Tensor, Tensor], Tensor]
) -> Generator[None, None, None]:
    """Replace a module's output by `change(input, output)` in the block."""

    def hook(module: nn.Module, given: tuple[Any, ...], output: Tensor) -> Tensor:
        return change(given[0], output)

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def on_input(module: nn.Module, change: Callable[[Tensor], Tensor]) -> Generator[None, None, None]:
    """Replace a module's input by `change(input)` in the block."""

    def hook(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return change(given[0]), *given[1:]

    handle = module.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def plus(added: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a change of a module's output: the sum with a tensor."""
    return lambda given, output: output + added


def hidden(model: GPT2, module: nn.Module, ids: Tensor) -> Tensor:
    """Return the output of a module for tokens."""
    found: list[Tensor] = []

    def keep(given: Tensor, output: Tensor) -> Tensor:
        found.append(output)
        return output

    with on_output(module, keep), gt.no_grad():
        model(ids)
    return found[0]


def middle(model: GPT2) -> nn.Module:
    """Return the block in the middle of the model."""
    return model.transformer.h[len(model.transformer.h) // 2]
