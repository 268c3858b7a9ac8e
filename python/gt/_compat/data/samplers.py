"""Samplers, which define the order in which a dataset's samples are read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from gt._arguments import brief

from . import order

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class of samplers: `__iter__` yields indices, or lists of indices for batches.

    A sampler may define `__len__`, which `len()` of a `DataLoader` needs.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("subclasses of Sampler implement __iter__")


class SequentialSampler(Sampler[int]):
    """A sampler that yields all indices in order.

    Args:
        data_source: a dataset with a length.

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
    """A sampler whose order follows from a seed, drawn from `generator` before each pass."""

    #: The seed of the next order; None to draw one.
    next_seed: int | None = None
    generator: order.Source

    def __iter__(self) -> Iterator[int]:
        seed, self.next_seed = self.next_seed, None
        return self._order(order.draw_seed(self.generator) if seed is None else seed)

    def _order(self, seed: int) -> Iterator[int]:
        raise NotImplementedError


class RandomSampler(SeededSampler):
    """A sampler that yields the indices in random order, or random indices with replacement.

    Args:
        data_source: a dataset with a length.
        replacement: whether to draw with replacement.
        num_samples: the number of indices to draw, by default the length of the dataset.
        generator: a `gt.Generator`, a `numpy.random.Generator` or a seed, instead of
            `gt.manual_seed`.

    Raises:
        TypeError: `replacement` is not a bool.
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
        """The number of indices per pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _order(self, seed: int) -> Iterator[int]:
        length, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            yield from order.below(length, wanted, seed)
            return
        for turn in range(-(-wanted // length)):
            shuffled = order.permutation(length, seed + turn)
            yield from order.numbers(shuffled[: wanted - turn * length])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(SeededSampler):
    """A sampler that yields given indices in random order.

    Args:
        indices: the indices.
        generator: the source of randomness, as for `RandomSampler`.
    """

    def __init__(self, indices: Sequence[int], generator: Any = None):
        if not isinstance(indices, Sized):
            raise TypeError(f"indices is {brief(indices)}, expected a list of indices")
        self.indices = indices
        self.generator = order.as_source(generator, "SubsetRandomSampler")

    def _order(self, seed: int) -> Iterator[int]:
        for place in order.numbers(order.permutation(len(self.indices), seed)):
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(SeededSampler):
    """A sampler that draws indices with probabilities proportional to given weights.

    Args:
        weights: nonnegative numbers, which need not sum to 1.
        num_samples: the number of indices to draw.
        replacement: whether to draw with replacement.
        generator: the source of randomness, as for `RandomSampler`.

    Raises:
        ValueError: `num_samples` is not positive, `replacement` is not a bool, or `weights` is not
            1-dimensional.
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
        return order.numbers(order.weighted(self.weights, self.num_samples, self.replacement, seed))

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """A sampler that groups another sampler's indices into lists.

    Args:
        sampler: any iterable of indices.
        batch_size: the length of a list.
        drop_last: whether to drop the last list if it is shorter.

    >>> list(gt.data.BatchSampler(gt.data.SequentialSampler(range(5)), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler[Any] | Iterable[Any], batch_size: int, drop_last: bool):
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got {drop_last=}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        # Not a generator function: the sampler must draw its order now, not at the first batch.
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
    """A sampler that yields one program's share of a dataset, for several programs in parallel.

    One GT program drives all workers of its session and does not need this. `set_epoch` selects
    the order of a pass, which is the same in all programs.

    Args:
        dataset: a dataset with a length.
        num_replicas: the number of programs, by default 1.
        rank: the number of this program, by default 0.
        shuffle: whether the order is random.
        seed: the seed of the order, together with the epoch; the same in all programs.
        drop_last: whether samples are dropped to make all shares equal; otherwise some are
            repeated.

    Raises:
        ValueError: `rank` is not between 0 and `num_replicas` - 1.

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
        places = np.arange(length)
        if self.shuffle:
            places = order.permutation(length, self.seed + self.epoch)
        # Unless dropping, repeat the order from its start up to total_size.
        everyone = np.resize(places, self.total_size)
        return order.numbers(everyone[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next pass, which selects its order."""
        self.epoch = epoch


class EndlessSampler(Sampler[None]):
    """A sampler for streams: yields None endlessly, once for each sample to read."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
