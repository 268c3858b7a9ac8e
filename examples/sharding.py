"""Helpers of the sharding examples: data, a training loop, and the comparison with one worker.

Each example trains the same model twice on the same digits: on one worker, and with its scopes.
The losses must agree, as signals never change results.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import gt
import numpy as np
from gt.demo import load_digits

#: Returns the scope of a signal, or a null context for training without signals.
Scope = Callable[[str], AbstractContextManager[object]]


def digits(count: int) -> tuple[gt.Tensor, gt.Tensor]:
    """Return images and labels of the first `count` training digits."""
    images, labels, _, _ = load_digits()
    return gt.from_numpy(images[:count]), gt.from_numpy(labels[:count])


def train_steps(
    loss: Callable[[int], gt.Tensor], optimizer: gt.optim.Optimizer, steps: int
) -> list[float]:
    """Minimize loss(step) for a number of steps; return the losses."""
    losses: list[gt.Tensor] = []
    for step in range(steps):
        value = loss(step)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(value.detach())
    return gt.stack(losses).tolist()


def compare(train: Callable[[Scope], list[float]], title: str) -> None:
    """Train with and without the scopes, and check that the losses agree."""
    gt.manual_seed(0)
    alone = train(lambda name: nullcontext())
    gt.manual_seed(0)
    with gt.debug.explain(quiet=True) as explanation:
        sharded = train(gt.signal.context)
    np.testing.assert_allclose(sharded, alone, rtol=1e-3)
    assert sharded[-1] < 0.7 * sharded[0], "training makes progress"
    print(f"{title}: loss {sharded[0]:.4f} -> {sharded[-1]:.4f}, the same as on one worker")
    print(
        f"between workers: {explanation.moved_bytes / 1e6:.2f} MB in {len(explanation.moves)} "
        "redistributions"
    )
