"""A program of a cluster as a child of this process, which ends with it."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from gt._processes import DRAIN


class ChildProcess:
    """A server or a worker: it has the key from its standard input, and ends when that does.

    So it ends with this process, however that dies. Its output is appended to a log.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        key: str,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ):
        """Start a program with the options `--key-file -` and `--until-eof`."""
        self.log = log
        self._start = log.stat().st_size if log.exists() else 0
        # It would win over the key of this cluster.
        inherited = {name: value for name, value in os.environ.items() if name != "GT_KEY"}
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [*command, "--key-file", "-", "--until-eof"],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env={**inherited, **(environment or {})},
                # A Ctrl-C in the terminal is for the program of the user.
                start_new_session=True,
            )
        _CHILDREN.add(self)
        # If it has ended already, its log says why.
        send_line(self._process, key)

    @property
    def pid(self) -> int:
        """Return the process ID."""
        return self._process.pid

    def exit_status(self) -> int | None:
        """Return the exit status, or None while it runs; negative for a signal."""
        status = self._process.poll()
        if status is not None:
            self.end()
        return status

    def output(self) -> str:
        """Return what it has written; nothing if its log was removed."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._start)
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def drain(self) -> None:
        """Have it end in good order: a worker hands over what it has.

        It is asked by its standard input: a scheduler may send it SIGTERM at the same time, and a
        second one would end it at once.
        """
        send_line(self._process, DRAIN)

    def end(self) -> None:
        """Have it end now; :meth:`wait` waits until it has."""
        end_input(self._process)

    def wait(self, limit: float) -> None:
        """Wait until it has ended; after the limit in seconds it is killed."""
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def send_line(process: subprocess.Popen[bytes], line: str) -> None:
    """Write a line to a program's standard input, unless it has ended."""
    assert process.stdin is not None
    try:
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
    except (BrokenPipeError, ValueError):
        pass


def end_input(process: subprocess.Popen[bytes]) -> None:
    """End a program's standard input."""
    assert process.stdin is not None
    try:
        process.stdin.close()
    except BrokenPipeError:
        pass


def _forget_all() -> None:
    """Close, in a forked child, what would keep them running when this process has ended."""
    for child in list(_CHILDREN):
        child.end()


_CHILDREN: weakref.WeakSet[ChildProcess] = weakref.WeakSet()
os.register_at_fork(after_in_child=_forget_all)
