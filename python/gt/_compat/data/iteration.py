"""One pass of a `DataLoader` over its dataset, in this process or with workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gt._public import show_callers_of_methods

from . import convert, fetch
from .position import Position

if TYPE_CHECKING:
    from .loader import DataLoader
    from .pool import WorkerPool
    from .worker import Result


class Iteration:
    """An iterator over the batches of one pass, made in this process.

    Args:
        job: how batches are made.
        indices: the indices of each batch, from the beginning of the pass.
        position: the position to start from; it is updated with each batch.
        state: the saved state of the dataset, if it is a stream that has one.
    """

    _shown_as = "DataLoader"

    def __init__(
        self, job: fetch.Job, indices: Iterator[Any], position: Position, state: Any = None
    ):
        self._job, self._indices, self._position = job, indices, position
        self._ended = False
        if not job.iterable:
            # Skip the batches before the position; zip also stops if the sampler ends earlier.
            for _ in zip(range(position.batches), indices, strict=False):
                pass
        self._begin(state)

    def _begin(self, state: Any) -> None:
        self._fetcher = self._job.start(self._position.batches, state)

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        try:
            return self._next_batch()
        except StopIteration:
            if not self._ended:
                self._ended = True
                self._position.finish()
            raise

    def _next_batch(self) -> Any:
        indices = next(self._indices)
        try:
            batch = self._fetcher.fetch(indices)
        except StopIteration:
            raise
        except Exception:
            # A batch that failed counts as yielded: the next call reads the following batch.
            self._position.batches += 1
            raise
        self._position.batches += 1
        return batch

    def stop(self) -> None:
        """Make a wait in another thread return; no more batches are yielded."""
        self._ended = True

    def close(self) -> None:
        """End the pass: no more batches are yielded."""
        self.stop()

    def dataset_state(self) -> Any:
        """Return the dataset's own state, or None if it has none or the pass has ended."""
        return None if self._ended else self._fetcher.state()


class WorkerIteration(Iteration):
    """An iterator over the batches of one pass, which are assigned to the workers in turn.

    Args:
        loader: the loader that started the pass.
        pool: the workers.
        indices: as for `Iteration`.
        position: as for `Iteration`.
    """

    def __init__(
        self, loader: DataLoader[Any], pool: WorkerPool, indices: Iterator[Any], position: Position
    ):
        self._pool = pool
        self._workers = range(loader.num_workers)
        self._ahead = loader.num_workers * (loader.prefetch_factor or 1)
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        self._keeps_pool = loader.persistent_workers
        super().__init__(loader._job, indices, position)

    def _begin(self, state: Any) -> None:
        from .worker import Start

        position = self._position
        position.given = position.given or [0 for _ in self._workers]
        position.states = position.states or [None for _ in self._workers]
        self._pool.epoch += 1
        self._epoch = self._pool.epoch
        self._turn = position.turn
        self._next_number = 0
        self._ended_workers: set[int] = set()
        #: Number and worker of the tasks whose batches were not yielded yet.
        self._tasks: deque[tuple[int, int]] = deque()
        #: The results that have arrived but were not yielded yet, by task number.
        self._results: dict[int, Result] = {}
        for worker in self._workers:
            skip, known = position.given[worker], position.states[worker]
            self._pool.ask(worker, Start(self._epoch, position.base_seed or 0, skip, known))
        for _ in range(self._ahead):
            self._send_task()

    def _send_task(self) -> None:
        """Send a worker the task of one more batch, if there are more batches."""
        from .worker import Task

        active = [worker for worker in self._workers if worker not in self._ended_workers]
        if not active:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        if self._in_order:
            worker = min(active, key=lambda each: (each - self._turn) % len(self._workers))
        else:
            worker = min(active, key=[who for _, who in self._tasks].count)
        self._turn = worker + 1
        self._pool.ask(worker, Task(self._epoch, self._next_number, indices))
        self._tasks.append((self._next_number, worker))
        self._next_number += 1

    def _next_batch(self) -> Any:
        if self._pool.epoch != self._epoch:
            raise RuntimeError(
                "another pass over the DataLoader has begun on its persistent workers\n"
                "  hint: persistent_workers=False for passes at the same time"
            )
        while (place := self._next_place()) is None:
            self._take()
        number, worker = self._tasks[place]
        del self._tasks[place]
        result = self._results.pop(number)
        position = self._position
        position.batches += 1
        position.given[worker] += 1
        position.states[worker] = result.state
        position.turn = (worker + 1) % len(self._workers)
        self._send_task()
        if result.error is not None:
            result.error.raise_here()
        return result.batch if convert.makes_arrays() else convert.to_tensors(result.batch)

    def _next_place(self) -> int | None:
        """Return the place in `_tasks` of the next result to yield, or None if none has arrived."""
        while self._tasks:
            number, worker = self._tasks[0]
            if number in self._results or worker not in self._ended_workers:
                break
            # The task was sent before the worker reported the end of its stream.
            self._tasks.popleft()
        if not self._tasks:
            self._end_pool()
            raise StopIteration
        wanted = list(self._tasks)[: 1 if self._in_order else None]
        return next((at for at, task in enumerate(wanted) if task[0] in self._results), None)

    def _take(self) -> None:
        """Wait for a result of this pass."""
        try:
            taken = self._pool.take(self._timeout, lambda: not self._ended)
        except RuntimeError:
            # A worker has died or timed out, and the pool is closed.
            self._ended = True
            raise
        if taken is None:
            self._end_pool()
            raise StopIteration
        worker, result = taken
        if result.epoch != self._epoch:
            return
        if not result.ended:
            self._results[result.number] = result
        elif worker not in self._ended_workers:
            self._ended_workers.add(worker)
            self._send_task()

    def close(self) -> None:
        """End the pass, and its workers unless they are persistent."""
        self.stop()
        self._end_pool()

    def _end_pool(self) -> None:
        if not self._keeps_pool:
            self._pool.close()

    def dataset_state(self) -> Any:
        """Return None: the states of workers' datasets are part of the position."""
        return None


show_callers_of_methods(Iteration)
show_callers_of_methods(WorkerIteration)
