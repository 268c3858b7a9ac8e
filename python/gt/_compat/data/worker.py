"""A worker process of a `DataLoader`: it receives tasks and sends batches of arrays.

It needs no session. A thread receives the parent's messages, so that the parent never blocks on a
busy worker, and ends the process when the parent is gone.
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
from pathlib import Path
from typing import Any

import numpy as np

import gt

from . import convert, fetch, transport

#: How often a worker checks that its parent is alive, in case the parent's sockets outlive it.
_LOOK_SECONDS = 5.0
#: The folder of GT's own code.
_FOLDER = str(Path(gt.__file__).parent) + os.sep
#: How long a worker may take to finish its last batch when its parent is gone.
_END_SECONDS = 5.0


@dataclass(frozen=True)
class Start:
    """The message that a pass over the dataset begins; tasks of earlier passes are dropped."""

    epoch: int
    base_seed: int
    #: The number of batches of a stream to skip.
    skip: int
    #: The `Fetcher.state` to resume from instead of skipping, if not None.
    state: dict[str, Any] | None


@dataclass(frozen=True)
class Task:
    """The request for the batch at given indices."""

    epoch: int
    number: int
    indices: Any


@dataclass(frozen=True)
class Result:
    """A batch, the end of the worker's stream, or an error."""

    epoch: int
    number: int
    batch: Any = None
    ended: bool = False
    error: Failure | None = None
    #: The `Fetcher.state` after the batch.
    state: dict[str, Any] | None = None


class Failure:
    """An exception in a worker, to be raised in the parent process."""

    def __init__(self, error: Exception, worker: int):
        self.kind: type[Exception] | None = type(error)
        name = type(error).__name__
        text = "".join(_shown(error).format())
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
            # The exception's constructor takes other arguments.
            error = RuntimeError(message)
        raise error from None


def _shown(error: BaseException) -> traceback.TracebackException:
    """Return a traceback without the lines of GT's own code, unless `GT_FULL_TRACEBACK` is set."""
    shown = traceback.TracebackException.from_exception(error)
    if os.environ.get("GT_FULL_TRACEBACK", "0") in ("", "0"):
        links: list[traceback.TracebackException | None] = [shown]
        for link in links:
            if link is not None:
                own = [frame for frame in link.stack if not frame.filename.startswith(_FOLDER)]
                link.stack = traceback.StackSummary.from_list(own)
                links += [link.__cause__, link.__context__]
    return shown


class _Text(str):
    """A message whose repr is itself, because `str(KeyError)` is the repr of its argument."""

    def __repr__(self) -> str:
        return str(self)


def main(
    connection: Connection,
    job: fetch.Job,
    init_fn: Callable[[int], Any] | None,
    worker: int,
    workers: int,
) -> None:
    """Execute tasks until the parent closes the connection."""
    # Ctrl-C reaches the whole process group, but only the parent ends workers. The parent blocked
    # SIGINT while it started this process.
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
    """Send a result, or a failure if it cannot be pickled."""
    try:
        transport.send(connection, result)
    except ConnectionError:
        # The parent is gone, or has closed the pool.
        os._exit(0)
    except Exception as raised:
        failure = result.error or Failure(raised, worker)
        # If the exception's type cannot be pickled, send only its text.
        failure.kind = None if result.error else failure.kind
        transport.send(connection, Result(result.epoch, result.number, error=failure))


def _seed(job: fetch.Job, base_seed: int, worker: int, workers: int) -> None:
    """Seed the worker's random generators, and set its `WorkerInfo`."""
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
    """Queue the parent's messages; end the process when the parent closes the connection."""
    parent = parent_process()
    assert parent is not None
    # With a fork server, the process that forked this one is the server, not the parent.
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
