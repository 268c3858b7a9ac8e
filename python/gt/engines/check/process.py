"""A child process that performs tasks, with a time limit between messages."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from gt.engines.check.tasks import Options, patience


class Lost(Exception):
    """The process died or exceeded its time limit; the text is the reason."""


class Process:
    """A child process that runs an engine.

    The engine's output goes to a file, whose contents the child reports itself.
    """

    def __init__(self, engine: str, device: int, options: Options, limit: float):
        self.limit = limit
        self.said = tempfile.TemporaryFile("w+b")  # noqa: SIM115
        self.pipe, theirs = multiprocessing.Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gt.engines.check.child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self.said,
                stderr=self.said,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.pipe.send((engine, device, sys.path, options))

    def load(self) -> Iterator[tuple[str, Any]]:
        """Wait for the engine to load; yield the child's messages."""
        yield from self._messages("load", 12)

    def perform(self, task: str) -> Iterator[tuple[str, Any]]:
        """Have the child perform a task; yield its messages.

        Raises `Lost` if the process dies, or sends nothing for too long.
        """
        with contextlib.suppress(OSError):  # `_messages` reports a dead process
            self.pipe.send(task)
        yield from self._messages(task, patience(task))

    def _messages(self, task: str, times: float) -> Iterator[tuple[str, Any]]:
        limit = times * self.limit
        while True:
            try:
                if not self.pipe.poll(limit):
                    raise Lost(f"has not come back for {limit:.0f} s")
                message = self.pipe.recv()
            except (EOFError, OSError) as error:
                raise Lost(f"ends the process: {self._end()}") from error
            if message[0] == "done":
                return
            yield message

    def _end(self) -> str:
        status = self.process.wait()
        how = f"exit status {status}"
        if status < 0:
            how = signal.Signals(-status).name
        size = os.fstat(self.said.fileno()).st_size
        last = os.pread(self.said.fileno(), 300, max(0, size - 300)).decode(errors="replace")
        return f"{how}\n{last.strip()}" if last.strip() else how

    def close(self) -> None:
        """Kill the process and all processes that the engine started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.pipe.close()
        self.said.close()
