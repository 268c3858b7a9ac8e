"""Random number generators: `gt.Generator`, and the one of this thread's session."""

from __future__ import annotations

import itertools
import os
from typing import Any

import gt
from gt import _gt
from gt._device import device as Device
from gt._gt import Tensor

#: The seed of a new generator, the same as PyTorch's.
_SEED = 67280421310721


class Generator:
    """A random number generator that is independent of `gt.manual_seed`.

    Random numbers are a function of the seed and the index of the call: the same seed yields the
    same numbers on any number of workers.

    Args:
        device: accepted for compatibility with PyTorch; it has no effect.

    >>> generator = gt.Generator().manual_seed(0)
    >>> gt.rand(2, generator=generator).shape
    (2,)
    """

    def __init__(self, device: Any = None):
        #: The device that it was made for; it has no effect.
        self.device = Device("cluster" if device is None else device)
        self.manual_seed(_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed, restart the sequence, and return the generator itself."""
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"manual_seed: {seed} given, expected -2**63 to 2**64 - 1")
        self._set(seed % 2**64, 0)
        return self

    def seed(self) -> int:
        """Set a random seed from the operating system, and return it."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def initial_seed(self) -> int:
        """Return the seed that the sequence started from."""
        return self._get()[0]

    def get_state(self) -> Tensor:
        """Return the state for `set_state`: the seed and the number of calls, as uint8 (16,)."""
        seed, calls = self._get()
        return _gt.tensor([*seed.to_bytes(8, "little"), *calls.to_bytes(8, "little")], "uint8")

    def set_state(self, new_state: Tensor) -> None:
        """Restore a state from `get_state`."""
        if new_state.dtype != gt.uint8 or new_state.shape != (16,):
            raise TypeError(
                f"set_state: new_state is {new_state.dtype.name} of shape {new_state.shape}, "
                "expected what get_state gives: uint8 of shape (16,)"
            )
        state = bytes(new_state.tolist())
        self._set(int.from_bytes(state[:8], "little"), int.from_bytes(state[8:], "little"))

    def next_call(self) -> tuple[int, int]:
        """Return the seed and the index of a new call."""
        return signed(self._seed), next(self._calls)

    def _get(self) -> tuple[int, int]:
        calls = next(self._calls)
        self._set(self._seed, calls)
        return self._seed, calls

    def _set(self, seed: int, calls: int) -> None:
        self._seed = seed
        self._calls = itertools.count(calls)

    def __repr__(self) -> str:
        return f"<gt.Generator with seed {self.initial_seed()}>"


class _SessionGenerator(Generator):
    """The random number generator of this thread's session."""

    def __init__(self) -> None:
        self.device = Device("cluster")

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed of this session and of sessions that are opened later."""
        _gt.manual_seed(seed)
        return self

    def next_call(self) -> tuple[int, int]:
        """Return the seed and the index of a new call."""
        seed, calls = _gt.next_random()
        return signed(seed), calls

    def _get(self) -> tuple[int, int]:
        return _gt.random_state()

    def _set(self, seed: int, calls: int) -> None:
        _gt.set_random_state(seed, calls)


def signed(seed: int) -> int:
    """Return the int64 with the same bits as a uint64 seed."""
    return seed - 2**64 if seed >= 2**63 else seed


#: The generator that is used where a call names none.
default_generator = _SessionGenerator()
