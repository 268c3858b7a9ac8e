"""The random numbers of this thread's session: where they start, and where they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gt._generator import Generator, default_generator
from gt._gt import Tensor

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
    """Start the random numbers of this thread's session anew: the same seed, the same numbers.

    Outside of `with` blocks, sessions that are opened later begin with the seed, too: those of this
    thread if it has connected, else all. Gives the session's generator.

    Args:
        seed: a whole number, from -2**63 to 2**64 - 1.
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the random numbers of this thread's session from a seed that nobody knows; give it.

    >>> first = gt.seed()
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the random numbers of this thread's session have started from.

    >>> gt.manual_seed(3).initial_seed() == gt.initial_seed() == 3
    True
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return where the random numbers of this thread's session are, for `set_rng_state`.

    >>> state = gt.get_rng_state()
    >>> first = gt.rand(3)
    >>> gt.set_rng_state(state)
    >>> gt.equal(first, gt.rand(3))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Have the random numbers of this thread's session go on from where `get_rng_state` was.

    Args:
        new_state: what `get_rng_state` or a generator's `get_state` gave.
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Have a `with` block draw random numbers without a trace: afterwards they go on as before it.

    Args:
        devices: accepted for PyTorch's programs; it changes nothing.
        enabled: without it, the block does nothing.
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
