"""Python's `multiprocessing` with PyTorch's further functions.

A tensor that is sent to another process is copied, with its values: processes share no memory of
tensors, and each has a session of its own. The threads of one process do share tensors.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing.connection import wait
from typing import Any

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def get_all_sharing_strategies() -> set[str]:
    """Return the names that `set_sharing_strategy` accepts."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Return the name of the strategy; it has no effect, as tensors are copied."""
    return _chosen["strategy"]


def set_sharing_strategy(new_strategy: str) -> None:
    """Check the name of a strategy and otherwise only store it: tensors are copied."""
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(
            f"set_sharing_strategy: got {new_strategy!r}, expected 'file_descriptor' or "
            "'file_system'"
        )
    _chosen["strategy"] = new_strategy


_chosen = {"strategy": "file_descriptor"}


class ProcessRaisedException(Exception):
    """A process of `spawn` raised an exception, whose traceback is in the message.

    Args:
        msg: the message.
        error_index: the number of the process.
        error_pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.error_index, self.pid = error_index, error_pid


class ProcessExitedException(Exception):
    """A process of `spawn` ended with an exit code other than 0, or by a signal.

    Args:
        msg: the message.
        error_index: the number of the process.
        error_pid: its process id.
        exit_code: its exit code; minus the number of the signal that ended it.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int):
        super().__init__(msg)
        self.error_index, self.pid, self.exit_code = error_index, error_pid, exit_code


class ProcessContext:
    """The processes of one call of `spawn`."""

    def __init__(self, processes: list[Any], errors: list[Any]):
        self.processes = processes
        self._errors = errors

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process fails or all have ended; return whether all have ended.

        Args:
            timeout: how many seconds to wait at most.
            grace_period: how many seconds the others get to end after one has failed.

        Raises:
            ProcessRaisedException: a process raised an exception; the others are terminated.
            ProcessExitedException: a process exited otherwise with a code other than 0.
        """
        running = {process.sentinel: at for at, process in enumerate(self.processes)}
        running = {of: at for of, at in running.items() if self.processes[at].exitcode is None}
        for sentinel in wait(list(running), timeout) if running else ():
            self.processes[running[sentinel]].join()
        failed = next((at for at, p in enumerate(self.processes) if p.exitcode), None)
        if failed is None:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            process.join(grace_period) if grace_period else None
            if process.exitcode is None:
                process.terminate()
                process.join()
        raise self._error(failed)

    def _error(self, at: int) -> Exception:
        process = self.processes[at]
        if self._errors[at].poll():
            text = f"\n\n-- Process {at} terminated with the following error:\n"
            return ProcessRaisedException(text + self._errors[at].recv(), at, process.pid)
        text = f"process {at} terminated with exit code {process.exitcode}"
        return ProcessExitedException(text, at, process.pid, process.exitcode)


def _call(fn: Callable[..., Any], at: int, args: tuple[Any, ...], errors: Any) -> None:
    """Call a function in a process; send the traceback of an exception to the parent."""
    try:
        fn(at, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call a function in several processes, each with its number and `args`.

    Args:
        fn: the function, called as `fn(number, *args)`.
        args: further arguments, which are copied to each process.
        nprocs: the number of processes.
        join: whether to wait for them.
        daemon: whether the processes end with this one.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        The processes if `join` is False, else None.

    Raises:
        ProcessRaisedException: a process raised an exception.
        ProcessExitedException: a process ended with an exit code other than 0.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for at in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_call, args=(fn, at, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


spawn = start_processes
