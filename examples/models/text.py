"""The demonstration of the language models: training on a short text, and reciting it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import gt
import numpy as np
from generation import generate
from gt import Tensor, nn

#: William Blake, The Tyger (1794).
TEXT = """Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?

In what distant deeps or skies
Burnt the fire of thine eyes?
On what wings dare he aspire?
What the hand, dare seize the fire?
"""


def encode(text: str) -> Tensor:
    """Return tokens (1, length): the ASCII code of each character."""
    return gt.tensor([list(text.encode("ascii"))], dtype=gt.int64)


def decode(ids: Tensor) -> list[str]:
    """Return the text of each row of tokens."""
    return ["".join(map(chr, row)) for row in ids.tolist()]


def batches(steps: int, batch: int, length: int) -> Iterator[np.ndarray]:
    """Yield tokens (batch, length) of random parts of the text, the same at every call."""
    codes = np.frombuffer(TEXT.encode("ascii"), np.uint8).astype(np.int64)
    starts = np.random.default_rng(0).integers(0, len(codes) - length, (steps, batch))
    for start in starts:
        yield codes[start[:, None] + np.arange(length)]


def next_token_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Return the mean cross entropy of each token, predicted from those before it."""
    logits = model(ids)[:, :-1]
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def train(model: nn.Module, steps: int, batch: int = 8, length: int = 48) -> list[float]:
    """Train on the text; return the loss of each step."""
    optimizer = gt.optim.AdamW(model.parameters(), lr=3e-3)
    losses: list[Tensor] = []
    for codes in batches(steps, batch, length):
        with gt.signal.context("batch"):
            loss = next_token_loss(model, gt.from_numpy(codes))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return gt.stack(losses).tolist()


def demonstrate(make_model: Callable[[], nn.Module], steps: int = 100) -> None:
    """Train a model on the text, and print the loss and the model's continuations of a line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--workers", type=int, default=1, help="workers in this process")
    arguments = parser.parse_args()
    gt.gpu_workers(arguments.workers)
    gt.manual_seed(0)
    model = make_model()
    losses = train(model, arguments.steps)
    print(f"loss: {losses[0]:.3f} -> {losses[-1]:.3f} after {len(losses)} steps")
    model.eval()
    with gt.signal.context("batch"):
        prompt = encode("In the forests")
        greedy = generate(model, prompt, 40)
        drawn = generate(model, prompt, 40, temperature=0.8, top_k=20, top_p=0.95)
    print(f"most likely: {decode(greedy)[0]!r}\ndrawn: {decode(drawn)[0]!r}")
