"""What the sharding examples share: real data, and the comparison with one worker.

Each example trains the same model twice on the same digits: on one worker, and with its scopes.
The losses must agree: signals never change a number.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import gt
import numpy as np
from gt.demo import load_digits

#: Gives the scope of a signal, or of none.
Scope = Callable[[str], AbstractContextManager]


def digits(count: int) -> tuple[gt.Tensor, gt.Tensor]:
    """Give images and labels of the first `count` training digits."""
    images, labels, _, _ = load_digits()
    return gt.from_numpy(images[:count]), gt.from_numpy(labels[:count])


def train_steps(loss: Callable[[int], gt.Tensor], optimizer: gt.optim.Optimizer, steps: int):
    """Train by the gradients of a loss, which is given each step's number; list the losses."""
    losses = []
    for step in range(steps):
        value = loss(step)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(value.detach())
    return gt.stack(losses).tolist()


def compare(train: Callable[[Scope], list[float]], title: str) -> None:
    """Train with the scopes and without, and check that the losses agree."""
    gt.manual_seed(0)
    alone = train(lambda name: nullcontext())
    gt.manual_seed(0)
    with gt.debug.explain(quiet=True) as explanation:
        sharded = train(gt.signal.context)
    np.testing.assert_allclose(sharded, alone, rtol=1e-3)
    assert sharded[-1] < 0.7 * sharded[0], "training makes progress"
    print(f"{title}: loss {sharded[0]:.4f} -> {sharded[-1]:.4f}, the same as on one worker")
    print(
        f"between workers: {explanation.moved_bytes / 1e6:.2f} MB in {len(explanation.moves)} moves"
    )
