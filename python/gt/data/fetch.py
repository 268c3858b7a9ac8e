"""Samples of a dataset to batches, in this process or in a worker."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gt._gt import Tensor
from gt.data import convert
from gt.data.collate import default_collate, default_convert


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker of a `DataLoader` knows of itself."""

    #: Its number: 0 to `num_workers` - 1.
    id: int
    #: How many workers there are.
    num_workers: int
    #: The seed of its random numbers.
    seed: int
    #: Its copy of the dataset.
    dataset: Any


#: Set in a worker.
_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Tell a dataset which worker it is read in: `id`, `num_workers`, `seed` and `dataset`.

    Outside of a worker, this gives None.

    >>> gt.data.get_worker_info() is None
    True
    """
    return _worker_info


def set_worker_info(info: WorkerInfo) -> None:
    """Say that this process is a worker."""
    global _worker_info
    _worker_info = info


def length(dataset: Any) -> int | None:
    """Give how many samples a dataset has; None where it does not say."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def samples_at(dataset: Any, indices: list) -> list:
    """Give the samples at some indices, at once if the dataset can."""
    at_once = getattr(dataset, "__getitems__", None)
    return at_once(indices) if callable(at_once) else [dataset[index] for index in indices]


def rows_at(dataset: Any, indices: Any) -> list | None:
    """Give the batch of some indices in few operations, where a dataset consists of tensors.

    It is the same batch that `default_collate` makes of single rows. None where it has to.
    """
    from gt.data.datasets import Subset, TensorDataset

    while type(dataset) is Subset:
        dataset, indices = dataset.dataset, [dataset.indices[index] for index in indices]
    if type(dataset) is not TensorDataset or not all(type(index) is int for index in indices):
        return None
    length, columns = len(dataset), dataset.columns()
    if not all(0 <= index < length for index in indices) or not all(
        isinstance(column, Tensor) or convert.becomes_tensor(column) for column in columns
    ):
        return None
    return [default_convert(column[list(indices)]) for column in columns]


def is_iterable(dataset: Any) -> bool:
    """Tell whether a dataset is a stream: what has no indices, or is called so by PyTorch."""
    from gt.data.datasets import IterableDataset

    torch_data = sys.modules.get("torch.utils.data")
    streams = (IterableDataset, getattr(torch_data, "IterableDataset", IterableDataset))
    has_indices = hasattr(dataset, "__getitem__")
    return isinstance(dataset, streams) or (hasattr(dataset, "__iter__") and not has_indices)


@dataclass(frozen=True)
class Job:
    """How batches are made, for this process or for workers."""

    dataset: Any
    iterable: bool
    #: Whether samples are put together, or given one at a time.
    batched: bool
    #: How many of a stream are put together.
    batch_size: int | None
    collate_fn: Callable[[Any], Any]
    drop_last: bool

    def start(self, skip: int = 0, state: dict[str, Any] | None = None) -> Fetcher:
        """Begin to read the dataset.

        Args:
            skip: how many batches of a stream were given before.
            state: what `Fetcher.state` gave then, if it did.
        """
        if not self.iterable:
            return Fetcher(self)
        if state is not None and not state["ended"]:
            self.dataset.load_state_dict(state["dataset"])
        fetcher = StreamFetcher(self)
        if state is None:
            fetcher.skip(skip)
        else:
            fetcher.ended = state["ended"]
        return fetcher


class Fetcher:
    """Makes the batch of some indices."""

    def __init__(self, job: Job):
        self.job = job

    def fetch(self, indices: Any) -> Any:
        """Give the next batch.

        Raises:
            StopIteration: the dataset is a stream, and at its end.
        """
        if self.job.batched and self.job.collate_fn is default_collate:
            rows = rows_at(self.job.dataset, indices)
            if rows is not None:
                return rows
        return self.job.collate_fn(self.samples(indices))

    def samples(self, indices: Any) -> Any:
        """Give what the next batch is made of."""
        dataset = self.job.dataset
        return samples_at(dataset, indices) if self.job.batched else dataset[indices]

    def state(self) -> dict[str, Any] | None:
        """Give where the dataset says that it is; None if it does not say."""
        return None


class StreamFetcher(Fetcher):
    """Makes a batch of the next samples."""

    def __init__(self, job: Job):
        super().__init__(job)
        self.stream: Iterator[Any] = iter(job.dataset)
        self.ended = False

    def samples(self, indices: Any) -> Any:
        """Give the next samples: as many as there are indices."""
        if self.ended:
            raise StopIteration
        if not self.job.batched:
            return next(self.stream)
        samples = []
        for _ in indices:
            try:
                samples.append(next(self.stream))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.job.drop_last and len(samples) < len(indices)):
            raise StopIteration
        return samples

    def skip(self, batches: int) -> None:
        """Read past some batches; a batch is as long as those that `fetch` is asked for."""
        count = batches * (self.job.batch_size or 1)
        next(itertools.islice(self.stream, count, count), None)

    def state(self) -> dict[str, Any] | None:
        """Give where the dataset says that it is, and whether its end was seen."""
        dataset = self.job.dataset
        names = ("state_dict", "load_state_dict")
        if not all(callable(getattr(dataset, name, None)) for name in names):
            return None
        return {"dataset": dataset.state_dict(), "ended": self.ended}
