"""Datasets: the sources of samples."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from gt._gt import Tensor
from gt._lines import warn

from . import convert, fetch, order

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of datasets whose samples have indices: implement `__getitem__` and `__len__`.

    A dataset that reads several samples faster at once also implements `__getitems__`, which takes
    a list of indices and returns the list of their samples.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("subclasses of Dataset implement __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of datasets that are streams: implement `__iter__`.

    Each worker of a `DataLoader` has a copy of the dataset, which uses `get_worker_info()` to read
    only this worker's share. When a loader is restored, a dataset with `state_dict()` and
    `load_state_dict(state)` resumes at its position; other datasets are read again from the
    start, and the earlier samples are skipped.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("subclasses of IterableDataset implement __iter__")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A dataset of tensors (or arrays): sample i is the tuple of their rows i.

    Args:
        *tensors: tensors of the same length.

    Raises:
        AssertionError: the lengths differ.

    >>> gt.data.TensorDataset(gt.arange(3), gt.arange(3) * 2)[1]
    (tensor(1, dtype=int64), tensor(2, dtype=int64))
    """

    def __init__(self, *tensors: Any):
        lengths = [len(tensor) for tensor in tensors]
        if any(length != lengths[0] for length in lengths):
            raise AssertionError(f"Size mismatch between tensors: their lengths are {lengths}")
        self.tensors = tensors
        #: Arrays that workers read in place of the tensors, because workers have no session.
        self._arrays: tuple[Any, ...] | None = None

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.columns())

    def __len__(self) -> int:
        return len(self.tensors[0])

    def columns(self) -> tuple[Any, ...]:
        """Return the tensors that samples are read from, or in a worker their arrays."""
        in_worker = fetch.get_worker_info() is not None
        return self._arrays if in_worker and self._arrays is not None else self.tensors

    def fetch_for_workers(self) -> None:
        """Fetch the tensors' current values, for worker processes without a session."""
        self._arrays = tuple(
            convert.standing_for(convert.as_array(tensor), convert.is_bfloat16(tensor))
            if isinstance(tensor, Tensor)
            else tensor
            for tensor in self.tensors
        )

    def __getstate__(self) -> dict[str, Any]:
        self.fetch_for_workers()
        return {"tensors": self._arrays, "_arrays": self._arrays}


class StackDataset(Dataset[Any]):
    """Several datasets side by side: a sample combines one sample of each in a tuple or dict.

    Args:
        *args: datasets of the same length, for samples that are tuples.
        **kwargs: datasets of the same length, for samples that are dicts.

    Raises:
        ValueError: both kinds of arguments or none are given, or the lengths differ.

    >>> gt.data.StackDataset(image=[10, 11], text=["a", "b"])[1]
    {'image': 11, 'text': 'b'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any):
        if args and kwargs:
            raise ValueError(
                "StackDataset: datasets were given both by position and by name, expected only one "
                "of these"
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}")
        self._length = lengths[0]

    def _sample(self, parts: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def _all(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def __getitem__(self, index: Any) -> Any:
        return self._sample(dataset[index] for dataset in self._all())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Return the samples at several indices."""
        columns = [fetch.samples_at(dataset, indices) for dataset in self._all()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch. "
                    f"Expected {len(indices)}, got {len(column)}"
                )
        return [self._sample(parts) for parts in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Several datasets, one after the other.

    Args:
        datasets: datasets with lengths.

    Raises:
        AssertionError: the list is empty, or contains an `IterableDataset`.

    >>> gt.data.ConcatDataset([[1, 2], [3]])[2]
    3
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(data) for data in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        if which == len(self.datasets):
            raise IndexError(f"index {idx} is out of range for a dataset of length {len(self)}")
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Several iterable datasets, one after the other.

    Args:
        datasets: any iterable of iterable datasets.
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._checked())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T_co]):
    """The samples of a dataset at given indices.

    A subclass that overrides `__getitem__` must override `__getitems__` too.

    Args:
        dataset: the whole dataset.
        indices: the indices in it.
    """

    def __init__(self, dataset: Any, indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__, which loaders call\n"
                "  hint: def __getitems__(self, indices): return [self[i] for i in indices]"
            )

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        index = self.indices[idx]
        if type(self.dataset) in (list, tuple) and type(index) is int:
            length = len(self.dataset)
            if not -length <= index < length:
                raise IndexError(f"index {index} is out of range for a dataset of length {length}")
        return self.dataset[index]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        """Return the samples at several indices."""
        return fetch.samples_at(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


@overload
def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[T]]: ...
@overload
def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[Any]]: ...
def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = None) -> Any:
    """Split a dataset randomly into parts.

    Args:
        dataset: a dataset with a length.
        lengths: the lengths of the parts, or fractions with the sum 1; samples that remain after
            rounding down go to the first parts, one each.
        generator: a `gt.Generator`, a `numpy.random.Generator` or a seed, instead of
            `gt.manual_seed`.

    Raises:
        ValueError: the sum of the lengths is not the dataset's length, or a fraction is not
            between 0 and 1.

    >>> [len(part) for part in gt.data.random_split(range(10), [0.75, 0.25], generator=0)]
    [8, 2]
    """
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _counts(lengths, total)
    if sum(lengths) != total:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"They are {sum(lengths)} and {total}"
        )
    seed = order.draw_seed(order.as_source(generator, "random_split"))
    indices = order.permutation(total, seed).tolist()
    ends = list(itertools.accumulate(int(length) for length in lengths))
    starts = [0, *ends[:-1]]
    return [Subset(dataset, indices[start:end]) for start, end in zip(starts, ends, strict=True)]


def _counts(fractions: Sequence[float], total: int) -> list[int]:
    """Return the number of samples of each fraction."""
    for place, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {place} is not between 0 and 1")
    counts = [math.floor(total * fraction) for fraction in fractions]
    for place in range(total - sum(counts)):
        counts[place % len(counts)] += 1
    for place, count in enumerate(counts):
        if count == 0:
            warn(
                f"Length of split at index {place} is 0. This might result in an empty dataset.",
            )
    return counts


def fetch_for_workers(dataset: Any) -> None:
    """Fetch the values of all tensors in a dataset, including those in nested datasets."""
    if isinstance(dataset, TensorDataset):
        dataset.fetch_for_workers()
    elif isinstance(dataset, Subset):
        fetch_for_workers(dataset.dataset)
    elif isinstance(dataset, ConcatDataset | StackDataset):
        parts = dataset.datasets
        for part in parts.values() if isinstance(parts, dict) else parts:
            fetch_for_workers(part)
