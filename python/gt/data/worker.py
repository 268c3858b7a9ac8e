"""A worker process of a `DataLoader`: takes tasks, gives batches of arrays.

It needs no session. A thread reads what the parent sends, so that the parent never waits for a
worker that is at work, and has the process end when the parent is gone.
"""

from __future__ import annotations

import os
import queue
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import connection as connections
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from gt.data import convert, fetch, transport

#: How often a worker looks whether its parent is there, should the parent's sockets survive it.
_LOOK_SECONDS = 5.0
#: How long a worker may be at its last batch when its parent is gone.
_END_SECONDS = 5.0


@dataclass(frozen=True)
class Start:
    """A pass over the dataset begins; tasks of earlier ones are not wanted any more."""

    epoch: int
    base_seed: int
    #: How many batches of a stream were given before, and are skipped,
    skip: int
    #: or what `Fetcher.state` gave then.
    state: dict[str, Any] | None


@dataclass(frozen=True)
class Task:
    """The batch of some indices is wanted."""

    epoch: int
    number: int
    indices: Any


@dataclass(frozen=True)
class Result:
    """A batch; or the end of the worker's stream; or an error."""

    epoch: int
    number: int
    batch: Any = None
    ended: bool = False
    error: Failure | None = None
    #: What `Fetcher.state` gives after the batch.
    state: dict[str, Any] | None = None


class Failure:
    """An exception, to be raised in another process."""

    def __init__(self, error: Exception, worker: int):
        self.kind: type[Exception] | None = type(error)
        name = type(error).__name__
        text = "".join(traceback.format_exception(error))
        self.message = (
            f"Caught {name} in DataLoader worker process {worker} (pid {os.getpid()}).\n"
            f"Original {text}"
        )

    def raise_here(self) -> None:
        """Raise an exception of the same type, with the worker's traceback as its message."""
        message: Any = _Text(self.message) if self.kind is KeyError else self.message
        try:
            error = self.kind(message) if self.kind else RuntimeError(message)
        except Exception:
            # The type takes other arguments.
            error = RuntimeError(message)
        raise error from None


class _Text(str):
    """A message that KeyError shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def main(
    connection: Connection,
    job: fetch.Job,
    init_fn: Callable[[int], Any] | None,
    worker: int,
    workers: int,
) -> None:
    """Work until the parent says that it is enough."""
    # Ctrl-C goes to the whole group; the parent, which has blocked it so far, ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    tasks: queue.SimpleQueue[Start | Task | None] = queue.SimpleQueue()
    latest = [0]
    threading.Thread(target=_read, args=(connection, tasks, latest), daemon=True).start()
    with convert.arrays_only():
        fresh = True
        fetcher: fetch.Fetcher | None = None
        error: Failure | None = None
        while (task := tasks.get()) is not None:
            if task.epoch != latest[0]:
                continue
            if isinstance(task, Start):
                fetcher, error = None, None
                try:
                    if fresh:
                        _seed(job, task.base_seed, worker, workers)
                        if init_fn is not None:
                            init_fn(worker)
                    fresh = False
                    fetcher = job.start(task.skip, task.state)
                except Exception as raised:
                    error = Failure(raised, worker)
            else:
                _send(connection, _result(fetcher, task, error, worker), worker)


def _result(
    fetcher: fetch.Fetcher | None, task: Task, error: Failure | None, worker: int
) -> Result:
    if fetcher is None or error is not None:
        return Result(task.epoch, task.number, error=error)
    try:
        batch = convert.to_arrays(fetcher.fetch(task.indices))
        return Result(task.epoch, task.number, batch, state=fetcher.state())
    except StopIteration as raised:
        if isinstance(fetcher, fetch.StreamFetcher):
            return Result(task.epoch, task.number, ended=True)
        return Result(task.epoch, task.number, error=Failure(raised, worker))
    except Exception as raised:
        return Result(task.epoch, task.number, error=Failure(raised, worker))


def _send(connection: Connection, result: Result, worker: int) -> None:
    """Send a result; if it cannot be pickled, say so."""
    try:
        transport.send(connection, result)
    except ConnectionError:
        # The parent is gone, or does not want it any more.
        os._exit(0)
    except Exception as raised:
        failure = result.error or Failure(raised, worker)
        # Where the exception's type cannot be sent, its text can.
        failure.kind = None if result.error else failure.kind
        transport.send(connection, Result(result.epoch, result.number, error=failure))


def _seed(job: fetch.Job, base_seed: int, worker: int, workers: int) -> None:
    """Give the worker random numbers of its own."""
    seed = base_seed + worker
    random.seed(seed)
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
    fetch.set_worker_info(fetch.WorkerInfo(worker, workers, seed, job.dataset))


def _read(
    connection: Connection, tasks: queue.SimpleQueue[Start | Task | None], latest: list[int]
) -> None:
    """Hand over what the parent sends; have the process end when it has no more to say."""
    parent = parent_process()
    assert parent is not None
    # With a fork server, the parent is not who has forked.
    forked_by = os.getppid()
    sources: list[Any] = [connection, parent.sentinel]
    try:
        while True:
            ready = connections.wait(sources, _LOOK_SECONDS)
            if connection in ready:
                task = transport.receive(connection)
                if isinstance(task, Start):
                    latest[0] = task.epoch
                tasks.put(task)
            elif ready or os.getppid() != forked_by:
                break
    except (EOFError, OSError):
        pass
    tasks.put(None)
    time.sleep(_END_SECONDS)
    os._exit(0)
