"""`DataLoader`: batches of a dataset."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from numpy.typing import NDArray

from gt._gt import Tensor

from . import arguments, collate, fetch, order
from .datasets import Dataset, fetch_for_workers
from .iteration import Iteration, WorkerIteration
from .position import Position
from .samplers import (
    BatchSampler,
    EndlessSampler,
    RandomSampler,
    Sampler,
    SeededSampler,
    SequentialSampler,
)

T_co = TypeVar("T_co", covariant=True)

#: Attributes that determine the batches, and cannot be set after construction.
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


if TYPE_CHECKING:
    from typing_extensions import Never

#: What `default_collate` makes a tensor of.
Stacked: TypeAlias = "Tensor | bool | int | float | NDArray[Any]"


class DataLoader(Generic[T_co]):
    """An iterable over the batches of a dataset; each iteration is one pass.

    The order of shuffled batches follows from `gt.manual_seed` or `generator`, and is the same on
    every machine. The position in a pass can be saved with `state_dict`; a loader constructed with
    the same arguments resumes there after `load_state_dict`.

    Args:
        dataset: an object with `__getitem__` and a length, or an iterable.
        batch_size: the number of samples per batch; None yields single samples.
        shuffle: whether each pass has a random order.
        sampler: yields the indices; excludes `shuffle`.
        batch_sampler: yields lists of indices; excludes `batch_size`, `shuffle`, `sampler` and
            `drop_last`.
        num_workers: the number of processes that read samples; 0 reads them in this process.
        collate_fn: makes a batch from a list of samples, by default `default_collate`. In workers,
            `default_collate` returns arrays, which become tensors in this process.
        pin_memory: accepted for compatibility with PyTorch and ignored.
        drop_last: whether to drop the last batch if it is smaller.
        timeout: the seconds to wait for a batch of a worker; 0 for no limit.
        worker_init_fn: called in each worker with its number.
        multiprocessing_context: how workers start: "fork", "spawn", "forkserver" or a context of
            `multiprocessing`; by default Python's default.
        generator: a `gt.Generator`, a `numpy.random.Generator` or a seed, instead of
            `gt.manual_seed`.
        prefetch_factor: the number of batches in flight per worker, by default 2.
        persistent_workers: whether workers are kept for the next pass.
        pin_memory_device: accepted for compatibility with PyTorch and ignored.
        in_order: whether batches of workers are yielded in order, or as soon as they are ready.

    Raises:
        ValueError: arguments exclude one another.
        RuntimeError: during iteration, a worker has died or `timeout` has passed.

    >>> [batch.tolist() for batch in gt.data.DataLoader(range(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    @overload
    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Any] | Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Any] | Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None: ...
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Any] | Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        arguments.check_sources(dataset, sampler, batch_sampler)
        arguments.check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        iterable = fetch.is_iterable(dataset)
        if iterable:
            options = {"shuffle": shuffle or None, "sampler": sampler}
            arguments.check_unspecified({**options, "batch_sampler": batch_sampler})
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = order.as_source(generator, "DataLoader")
        if sampler is None:
            if iterable:
                sampler = EndlessSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=self.generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        batched = batch_sampler is not None
        default = collate.default_collate if batched else collate.default_convert
        self.collate_fn = collate_fn or default
        self.persistent_workers = persistent_workers
        self._iterable = iterable
        self._pool: Any = None
        self._position = Position()
        #: The restored position and dataset state, with which the next `__iter__` starts.
        self._restored: tuple[Position, Any] | None = None
        self._iteration: Any = None
        self._initialized = True
        arguments.warn_of_many(num_workers)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_initialized" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers start: a context of `multiprocessing`, or None for Python's default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, given: Any) -> None:
        self._context = arguments.start_method(given, self.num_workers)

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _job(self) -> fetch.Job:
        return fetch.Job(
            self.dataset,
            self._iterable,
            self.batch_sampler is not None,
            self.batch_size,
            self.collate_fn,
            self.drop_last,
        )

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)
        length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    # The first is that of `DataLoader[Any]`, which fits all of them.
    @overload
    def __iter__(self: DataLoader[Never]) -> Iterator[Any]: ...
    @overload
    def __iter__(self: DataLoader[Stacked]) -> Iterator[Tensor]: ...
    @overload
    def __iter__(self: DataLoader[tuple[Stacked, ...]]) -> Iterator[list[Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[Mapping[str, Stacked]]) -> Iterator[dict[str, Tensor]]: ...
    @overload
    def __iter__(self) -> Iterator[Any]: ...
    def __iter__(self) -> Iterator[Any]:
        position, state = self._restored or (self._position.following(), None)
        self._restored = None
        if position.base_seed is None:
            position.base_seed = order.draw_seed(self.generator)
        if (seeded := self._seeded_sampler()) is not None:
            if position.order_seed is None:
                position.order_seed = order.draw_seed(seeded.generator)
            seeded.next_seed = position.order_seed
        indices = iter(self._index_sampler)
        self._position = position
        if self.num_workers:
            iteration: Iteration = WorkerIteration(self, self._started_pool(), indices, position)
        else:
            iteration = Iteration(self._job, indices, position, state)
        # A weak reference, so that a pass that the program drops is freed and stops its workers.
        self._iteration = weakref.ref(iteration)
        return iteration

    def __getstate__(self) -> dict[str, Any]:
        # Workers and the running pass are not copied.
        return {**self.__dict__, "_iteration": None, "_pool": None}

    def _seeded_sampler(self) -> SeededSampler | None:
        """Return the sampler if its order follows from a seed, else None."""
        sampler = self._index_sampler
        if isinstance(sampler, BatchSampler):
            sampler = sampler.sampler
        return sampler if isinstance(sampler, SeededSampler) else None

    def _started_pool(self) -> Any:
        """Return the persistent workers if they are running, else start new ones."""
        if self._pool is not None and not self._pool.closed:
            return self._pool
        import multiprocessing

        from .pool import WorkerPool

        fetch_for_workers(self.dataset)
        context = self._context or multiprocessing.get_context()
        pool = WorkerPool(context, self._job, self.worker_init_fn, self.num_workers)
        if self.persistent_workers:
            self._pool = pool
        return pool

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the last pass as plain data: its batch count and order.

        It includes the `state_dict()` of a stream that also has `load_state_dict`.

        Raises:
            RuntimeError: with `in_order=False` a batch count does not determine a position.
        """
        if self.num_workers and not self.in_order:
            raise RuntimeError(
                "state_dict: with in_order=False, the position of the loader is not known\n"
                "  hint: in_order=True"
            )
        if self._restored is not None:
            position, state = self._restored
        else:
            position = self._position
            iteration = self._iteration() if self._iteration else None
            state = iteration.dataset_state() if iteration is not None else None
        return {
            **position.state(),
            "dataset": state,
            **self._made_as(),
            "generators": [order.get_state(source) for source in self._sources()],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a position: the next pass yields exactly the remaining batches.

        The loader must have been constructed with the same arguments as the saved one. A custom
        sampler must yield the same order again. If the order follows from `gt.manual_seed`, also
        save and restore `gt.get_rng_state()` to repeat the orders of later passes.

        Raises:
            ValueError: the state is not a loader's, or that of a loader with another batch size,
                dataset length or kind of order.
        """
        state = dict(state_dict)
        for name, own in self._made_as().items():
            if (stored := state.pop(name, own)) != own:
                raise ValueError(f"load_state_dict: {name} was {stored}, but is {own} here")
        dataset, generators = state.pop("dataset", None), state.pop("generators", [])
        position = Position.of(state)
        if len(position.given) != self.num_workers:
            position.given, position.states, position.turn = [], [], 0
        for source, stored in zip(self._sources(), generators, strict=False):
            order.set_state(source, stored)
        self._restored = (position, dataset)

    def _made_as(self) -> dict[str, Any]:
        """Return the properties that a loader must share with the one whose state it loads."""
        seeded = self._seeded_sampler()
        return {
            "batch_size": self.batch_size,
            "num_workers": self.num_workers if self._iterable else None,
            "dataset length": fetch.length(self.dataset),
            "order": "unseeded" if seeded is None else type(seeded).__name__,
        }

    def _sources(self) -> list[order.Source]:
        """Return the loader's and the sampler's sources of random numbers, each once."""
        seeded = self._seeded_sampler()
        own = [self.generator, seeded.generator if seeded is not None else None]
        return own[:1] if own[1] is own[0] else own
