"""The random number generator of this thread's session: its seed and its state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gt._generator import Generator, default_generator
from gt._gt import Tensor
from gt._public import show_callers

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int) -> Generator:
    """Restart the random numbers of this thread's session from a seed; return its generator.

    The same seed yields the same numbers. Outside of `with` blocks, sessions that are opened later
    start from the seed, too: those of this thread if it has connected, else all.

    Args:
        seed: a whole number, from -2**63 to 2**64 - 1.
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Restart the random numbers of this thread's session from a random seed, and return it.

    >>> first = gt.seed()
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the random numbers of this thread's session started from.

    >>> gt.manual_seed(3).initial_seed() == gt.initial_seed() == 3
    True
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the random numbers of this thread's session, for `set_rng_state`.

    >>> state = gt.get_rng_state()
    >>> first = gt.rand(3)
    >>> gt.set_rng_state(state)
    >>> gt.equal(first, gt.rand(3))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore the state of the random numbers of this thread's session.

    Args:
        new_state: the result of `get_rng_state` or of a generator's `get_state`.
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the state of the random numbers after a `with` block.

    Args:
        devices: accepted for compatibility with PyTorch; it has no effect.
        enabled: False leaves the state after the block as it is.
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)


show_callers(globals())
