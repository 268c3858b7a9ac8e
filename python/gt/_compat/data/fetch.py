"""Reading of a dataset's samples into batches, in this process or in a worker."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gt._gt import Tensor

from . import convert
from .collate import default_collate, default_convert


@dataclass(frozen=True)
class WorkerInfo:
    """The identity of a worker of a `DataLoader`."""

    #: The worker's number: 0 to `num_workers` - 1.
    id: int
    #: The number of workers.
    num_workers: int
    #: The seed of the worker's random numbers.
    seed: int
    #: The worker's copy of the dataset.
    dataset: Any


#: Set in worker processes only.
_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return this worker's `id`, `num_workers`, `seed` and `dataset`, or None outside a worker.

    >>> gt.data.get_worker_info() is None
    True
    """
    return _worker_info


def set_worker_info(info: WorkerInfo) -> None:
    """Mark this process as a worker."""
    global _worker_info
    _worker_info = info


def length(dataset: Any) -> int | None:
    """Return the length of a dataset, or None if it has no length."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def samples_at(dataset: Any, indices: list[Any]) -> list[Any]:
    """Return the samples at several indices, by one `__getitems__` call if the dataset has it."""
    at_once = getattr(dataset, "__getitems__", None)
    return at_once(indices) if callable(at_once) else [dataset[index] for index in indices]


def rows_at(dataset: Any, indices: Any) -> list[Any] | None:
    """Return the batch at several indices by one indexing operation per tensor.

    The batch is the same as that of `default_collate`. Return None if the dataset does not consist
    of tensors or an index is not a plain, valid one: then samples must be collated.
    """
    from .datasets import Subset, TensorDataset

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
    """Return whether a dataset is a stream: an IterableDataset, or an iterable without indices."""
    from .datasets import IterableDataset

    torch_data = sys.modules.get("torch.utils.data")
    streams = (IterableDataset, getattr(torch_data, "IterableDataset", IterableDataset))
    has_indices = hasattr(dataset, "__getitem__")
    return isinstance(dataset, streams) or (hasattr(dataset, "__iter__") and not has_indices)


@dataclass(frozen=True)
class Job:
    """The description of how batches are made, used by this process or sent to workers."""

    dataset: Any
    iterable: bool
    #: Whether samples are collated into batches, or yielded one at a time.
    batched: bool
    #: The number of samples per batch of a stream.
    batch_size: int | None
    collate_fn: Callable[[Any], Any]
    drop_last: bool

    def start(self, skip: int = 0, state: dict[str, Any] | None = None) -> Fetcher:
        """Start reading the dataset.

        Args:
            skip: the number of batches that a stream has yielded before.
            state: the `Fetcher.state` at that position, which replaces skipping if not None.
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
    """Reads the batch at given indices."""

    def __init__(self, job: Job):
        self.job = job

    def fetch(self, indices: Any) -> Any:
        """Return the next batch.

        Raises:
            StopIteration: the dataset is a stream that has ended.
        """
        if self.job.batched and self.job.collate_fn is default_collate:
            rows = rows_at(self.job.dataset, indices)
            if rows is not None:
                return rows
        return self.job.collate_fn(self.samples(indices))

    def samples(self, indices: Any) -> Any:
        """Return the samples of the next batch, or the next sample if not batched."""
        dataset = self.job.dataset
        return samples_at(dataset, indices) if self.job.batched else dataset[indices]

    def state(self) -> dict[str, Any] | None:
        """Return the position in the dataset as the dataset reports it, or None."""
        return None


class StreamFetcher(Fetcher):
    """Reads batches from a stream."""

    def __init__(self, job: Job):
        super().__init__(job)
        self.stream: Iterator[Any] = iter(job.dataset)
        self.ended = False

    def samples(self, indices: Any) -> Any:
        """Return the next samples, one for each element of `indices`."""
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
        """Read and discard batches of the configured batch size."""
        count = batches * (self.job.batch_size or 1)
        next(itertools.islice(self.stream, count, count), None)

    def state(self) -> dict[str, Any] | None:
        """Return the dataset's own state and whether its end was reached, or None without one."""
        dataset = self.job.dataset
        names = ("state_dict", "load_state_dict")
        if not all(callable(getattr(dataset, name, None)) for name in names):
            return None
        return {"dataset": dataset.state_dict(), "ended": self.ended}
