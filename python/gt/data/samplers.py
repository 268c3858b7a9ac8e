"""Samplers: in which order a dataset's samples are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from gt.data import order

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class of samplers: `__iter__` gives indices, or lists of indices for batches.

    A sampler may have `__len__`, which the length of a `DataLoader` needs.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("subclasses of Sampler implement __iter__")


class SequentialSampler(Sampler[int]):
    """Takes the samples in their order.

    Args:
        data_source: what has a length.

    >>> list(gt.data.SequentialSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class SeededSampler(Sampler[int]):
    """A sampler whose order follows from a seed, which it draws from its source at each start."""

    #: The seed of the next order, if it is not to be drawn.
    next_seed: int | None = None
    generator: order.Source

    def __iter__(self) -> Iterator[int]:
        seed, self.next_seed = self.next_seed, None
        return self._order(order.draw_seed(self.generator) if seed is None else seed)

    def _order(self, seed: int) -> Iterator[int]:
        raise NotImplementedError


class RandomSampler(SeededSampler):
    """Takes the samples in random order, or with replacement.

    Args:
        data_source: what has a length.
        replacement: whether a sample may come again.
        num_samples: how many are taken; as many as there are, if not given.
        generator: a `gt.Generator`, a `numpy.random.Generator` or a seed, instead of
            `gt.manual_seed`.

    Raises:
        TypeError: `replacement` is no bool.
        ValueError: `num_samples` is not positive.

    >>> sorted(gt.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = order.as_source(generator, "RandomSampler")
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got {replacement=}")
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many samples are taken."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _order(self, seed: int) -> Iterator[int]:
        length, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            yield from order.below(length, wanted, seed)
            return
        for turn in range(-(-wanted // length)):
            yield from order.permutation(length, seed + turn)[: wanted - turn * length]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(SeededSampler):
    """Takes given indices in random order.

    Args:
        indices: the indices.
        generator: as of `RandomSampler`.
    """

    def __init__(self, indices: Sequence[int], generator: Any = None):
        self.indices = indices
        self.generator = order.as_source(generator, "SubsetRandomSampler")

    def _order(self, seed: int) -> Iterator[int]:
        for place in order.permutation(len(self.indices), seed):
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(SeededSampler):
    """Takes the places of given weights, each as likely as its weight says.

    Args:
        weights: numbers of at least 0, whatever their sum.
        num_samples: how many are taken.
        replacement: whether a place may come again.
        generator: as of `RandomSampler`.

    Raises:
        ValueError: `num_samples` is not positive, `replacement` no bool, or `weights` not 1-d.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ):
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got {replacement=}")
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {self.weights.shape}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = order.as_source(generator, "WeightedRandomSampler")

    def _order(self, seed: int) -> Iterator[int]:
        return iter(order.weighted(self.weights, self.num_samples, self.replacement, seed))

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Takes another sampler's indices in lists.

    Args:
        sampler: any iterable of indices.
        batch_size: the length of a list.
        drop_last: whether a last list that is shorter is left out.

    >>> list(gt.data.BatchSampler(gt.data.SequentialSampler(range(5)), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler | Iterable[Any], batch_size: int, drop_last: bool):
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got {drop_last=}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        # Begun at once: the sampler's order is that of this moment.
        return self._batches(iter(self.sampler))

    def _batches(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full if self.drop_last or not rest else full + 1


class DistributedSampler(Sampler[int]):
    """Takes the share of one of several programs that train together on a dataset.

    A GT program drives all workers of its session, and needs no share; this is for programs that
    run side by side. `set_epoch` gives each pass its own order, which is the same for all of them.

    Args:
        dataset: what has a length.
        num_replicas: how many programs there are: 1, if not given.
        rank: which of them this one is: 0, if not given.
        shuffle: whether the order is random.
        seed: what the order follows from, with the pass; the same in all programs.
        drop_last: whether samples are left out so that all shares are equal; else some come twice.

    Raises:
        ValueError: `rank` is not below `num_replicas`.

    >>> list(gt.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        self.num_replicas = 1 if num_replicas is None else num_replicas
        self.rank = 0 if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"Invalid rank {self.rank}, rank should be in the interval "
                f"[0, {self.num_replicas - 1}]"
            )
        self.dataset = dataset
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        length = len(dataset)
        share = length // self.num_replicas if drop_last else -(-length // self.num_replicas)
        self.num_samples = share
        self.total_size = share * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        indices = range(length)
        places = order.permutation(length, self.seed + self.epoch) if self.shuffle else indices
        # Without dropping, the first ones come again, as often as it takes.
        everyone = itertools.islice(itertools.cycle(places), self.total_size)
        return itertools.islice(everyone, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which pass is next: each has an order of its own."""
        self.epoch = epoch


class EndlessSampler(Sampler[None]):
    """Asks an iterable dataset for its next sample, without end."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
