"""Random orders that follow from a seed, the same on every machine and with every NumPy version.

They are computed from the raw output of the Philox generator, which NumPy guarantees not to
change, and not from NumPy's distributions, which may change between versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from gt import _generator

#: A user's source of random numbers.
Source: TypeAlias = _generator.Generator | Any | None


def as_source(given: Any, who: str) -> Source:
    """Return a `generator=` argument as a source; an integer seeds a new `gt.Generator`.

    Raises:
        TypeError: the argument is not a source of random numbers.
    """
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return _generator.Generator().manual_seed(int(given))
    if given is _generator.default_generator:
        return None
    if given is None or isinstance(given, _generator.Generator | np.random.Generator):
        return given
    raise TypeError(
        f"{who}: generator is {type(given).__name__}, expected gt.Generator, "
        "numpy.random.Generator or an integer\n  hint: generator=a seed"
    )


def draw_seed(source: Source) -> int:
    """Draw a seed of 63 bits from a source; None stands for the generator of `gt.manual_seed`."""
    if isinstance(source, np.random.Generator):
        high, low = source.bit_generator.random_raw(2).tolist()
        return (high << 32 ^ low) % 2**63
    seed, call = (source or _generator.default_generator).next_call()
    halves = 2**32 - 1
    words = [seed & halves, seed >> 32 & halves, call & halves, call >> 32 & halves]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]) >> 1


def get_state(source: Source) -> Any:
    """Return a source's state as plain data; None for the generator of `gt.manual_seed`."""
    if isinstance(source, np.random.Generator):
        return source.bit_generator.state
    return None if source is None else list(source._get())


def set_state(source: Source, state: Any) -> None:
    """Restore a source's state, as returned by `get_state`."""
    if state is None or source is None:
        return
    if isinstance(source, np.random.Generator):
        source.bit_generator.state = state
    else:
        source._set(*state)


#: How many indices are Python numbers at a time.
_BLOCK = 1 << 14


def permutation(count: int, seed: int) -> np.ndarray:
    """Return the integers below `count` in random order."""
    return np.argsort(np.random.Philox(seed).random_raw(count), kind="stable")


def numbers(indices: np.ndarray) -> Iterator[int]:
    """Yield the integers in an array, a block at a time: a list of all would take 5 times more."""
    for start in range(0, len(indices), _BLOCK):
        yield from indices[start : start + _BLOCK].tolist()


def uniform(count: int, random: np.random.Philox) -> np.ndarray:
    """Return the next random numbers between 0 and 1, both excluded."""
    words = random.random_raw(count) >> np.uint64(12)
    return (words.astype(np.float64) + 0.5) * 2.0**-52


def below(high: int, count: int, seed: int) -> Iterator[int]:
    """Yield `count` random integers below `high`."""
    random = np.random.Philox(seed)
    for start in range(0, count, _BLOCK):
        yield from (uniform(min(_BLOCK, count - start), random) * high).astype(np.int64).tolist()


def weighted(weights: np.ndarray, count: int, replacement: bool, seed: int) -> np.ndarray:
    """Return `count` random indices, with probabilities proportional to `weights`.

    Without replacement, these are the indices of the largest `log(u) / weight`, u uniform
    (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).

    Raises:
        RuntimeError: a weight is negative or not finite, or too few weights are above zero.
    """
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise RuntimeError("weights contain inf, nan or a number below 0")
    possible = np.flatnonzero(weights)
    if len(possible) == 0:
        raise RuntimeError("the sum of the weights is 0, expected at least one above 0")
    random = np.random.Philox(seed)
    if replacement:
        totals = np.cumsum(weights[possible])
        places = np.searchsorted(totals, uniform(count, random) * totals[-1], side="right")
        return possible[np.minimum(places, len(possible) - 1)]
    if len(possible) < count:
        raise RuntimeError(
            f"cannot draw {count} samples without replacement from {len(possible)} weights above "
            "0\n"
            "  hint: replacement=True, or fewer samples"
        )
    keys = np.log(uniform(len(possible), random)) / weights[possible]
    return possible[np.argsort(-keys, kind="stable")[:count]]
