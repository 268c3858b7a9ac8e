"""The worker processes of a `DataLoader`.

A wait cannot hang on a dead worker: the system closes its socket, which ends the wait with an
error. The processes end with the pool, or with this process.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection as connections
from typing import Any

from . import fetch, transport, worker

#: How long to wait for workers after closing their connections, and after each signal.
_END_SECONDS = 2.0
#: How often a wait checks whether the pass was stopped.
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Worker:
    """A worker process, and the connection to it."""

    process: Any
    connection: Any


class WorkerPool:
    """Processes that make batches.

    Args:
        context: the `multiprocessing` context that starts processes.
        job: how batches are made.
        init_fn: called in each worker with its number, before the first pass.
        workers: the number of workers.
    """

    def __init__(
        self, context: Any, job: fetch.Job, init_fn: Callable[[int], Any] | None, workers: int
    ):
        self._workers: list[Worker] = []
        self._finalizer = weakref.finalize(self, _end, self._workers, os.getpid())
        #: The number of the current pass, with which tasks and results are labelled.
        self.epoch = 0
        try:
            for number in range(workers):
                here, there = context.Pipe(duplex=True)
                process = context.Process(
                    target=worker.main,
                    args=(there, job, init_fn, number, workers),
                    name=f"gt-data-{number}",
                    daemon=True,
                )
                with _interrupts_blocked():
                    process.start()
                there.close()
                self._workers.append(Worker(process, here))
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._finalizer.alive

    def close(self) -> None:
        """End the processes. Closing again does nothing."""
        self._finalizer()

    def ask(self, number: int, task: worker.Start | worker.Task) -> None:
        """Send a worker a task. If the worker has died, a later `take` raises the error."""
        with suppress(ConnectionError):
            transport.send(self._workers[number].connection, task)

    def take(
        self, timeout: float, is_wanted: Callable[[], bool]
    ) -> tuple[int, worker.Result] | None:
        """Wait for a result of any worker; return the worker's number and the result.

        Returns None soon after `is_wanted()` becomes false.

        Raises:
            RuntimeError: a worker has died, or no result arrived in `timeout` seconds (0: no
                limit).
        """
        start = time.monotonic()
        numbers: dict[Any, int] = {
            each.connection: number for number, each in enumerate(self._workers)
        }
        while is_wanted():
            ready: list[Any] = connections.wait(list(numbers), _LOOK_SECONDS)
            for connection in ready:
                try:
                    return numbers[connection], transport.receive(connection)
                except (EOFError, ConnectionError):
                    self._raise_died(numbers[connection])
            if timeout and time.monotonic() - start > timeout:
                self.close()
                raise RuntimeError(
                    f"DataLoader timed out after {timeout} seconds\n  hint: a larger timeout=, or "
                    "num_workers=0 to find the slow code"
                )
        return None

    def _raise_died(self, number: int) -> None:
        process = self._workers[number].process
        process.join(_END_SECONDS)
        pid, code = process.pid, process.exitcode
        self.close()
        if code is None:
            how = "has closed its connection"
        elif code < 0:
            name = signal.Signals(-code).name if -code in iter(signal.Signals) else str(-code)
            how = f"was killed by signal {name}"
        else:
            how = f"exited unexpectedly with exit code {code}"
        hint = "num_workers=0 shows errors where they happen"
        if code == -signal.SIGKILL:
            hint = "the system may be out of memory: use fewer workers or smaller batches"
        raise RuntimeError(f"DataLoader worker {number} (pid {pid}) {how}\n  hint: {hint}")


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT, so that a process started in the block is not interrupted while it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(workers: list[Worker], owner: int) -> None:
    """End processes: first by shutting down their sockets, then by SIGTERM, then by SIGKILL."""
    if os.getpid() != owner:
        # This process was forked from the owner: the workers are not its children.
        return
    for each in workers:
        # Unlike close(), shutdown() is effective even if other processes inherited the socket.
        try:
            with socket.socket(fileno=os.dup(each.connection.fileno())) as beside:
                beside.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
    for stop in (None, "terminate", "kill"):
        deadline = time.monotonic() + _END_SECONDS
        for each in workers:
            if stop is not None and each.process.is_alive():
                getattr(each.process, stop)()
            each.process.join(max(0.0, deadline - time.monotonic()))
        if not any(each.process.is_alive() for each in workers):
            break
    for each in workers:
        each.connection.close()
    workers.clear()
