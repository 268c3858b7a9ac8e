"""A source of random numbers of its own: `gt.Generator`."""

from __future__ import annotations

import itertools
import os
from typing import Any

from gt import _gt
from gt._gt import Tensor

#: What a generator starts with, as PyTorch's do.
_SEED = 67280421310721


class Generator:
    """A source of random numbers that is apart from `gt.manual_seed`.

    Random numbers follow from a seed and the number of the call: the same seed gives the same
    numbers, on any number of workers.

    Args:
        device: accepted for PyTorch's programs; it changes nothing.

    >>> generator = gt.Generator().manual_seed(0)
    >>> gt.rand(2, generator=generator).shape
    (2,)
    """

    def __init__(self, device: Any = None):
        self.device = device
        self.manual_seed(_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from a seed; give the generator itself."""
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"manual_seed: {seed} given, expected -2**63 to 2**64 - 1")
        self._set(seed % 2**64, 0)
        return self

    def seed(self) -> int:
        """Start anew from a seed that nobody knows; give the seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def initial_seed(self) -> int:
        """Give the seed that it has started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Give where it is, for `set_state`."""
        calls = next(self._calls)
        self._set(self._seed, calls)
        return _gt.tensor([_signed(self._seed), calls], dtype="int64")

    def set_state(self, new_state: Tensor) -> None:
        """Go on from where `get_state` was."""
        seed, calls = new_state.tolist()
        self._set(seed % 2**64, calls)

    def next_call(self) -> tuple[int, int]:
        """Give the seed and the number of a call; each call has a number of its own."""
        return _signed(self._seed), next(self._calls)

    def _set(self, seed: int, calls: int) -> None:
        self._seed = seed
        self._calls = itertools.count(calls)

    def __repr__(self) -> str:
        return f"<gt.Generator with seed {self._seed}>"


def _signed(seed: int) -> int:
    """Give the int64 of the same bits."""
    return seed - 2**64 if seed >= 2**63 else seed
