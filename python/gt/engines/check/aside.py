"""Detection of an engine's side effects: output and forks."""

import os
import sys

#: The id of this process, and how often it has forked.
_process = os.getpid()
_forks = 0


def _count() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_count)


def forks() -> int:
    """Return how often this process has forked."""
    return _forks


def leave_copy() -> None:
    """Exit at once if this process is a fork that the engine made."""
    if os.getpid() != _process:
        os._exit(0)


class Output:
    """Reads what is written to the file that stdout and stderr are redirected to."""

    def __init__(self, file: int):
        self._file = file
        self._seen = os.fstat(file).st_size

    def new(self) -> str:
        """Return what was written since the last call."""
        sys.stdout.flush()
        sys.stderr.flush()
        size = os.fstat(self._file).st_size
        text = os.pread(self._file, size - self._seen, self._seen)
        self._seen = size
        return text.decode(errors="replace")
