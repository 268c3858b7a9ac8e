"""What an engine does besides computing: it prints, and it forks."""

import os
import sys

#: This process, and how often it has forked.
_process = os.getpid()
_forks = 0


def _count() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_count)


def forks() -> int:
    """Say how often this process has forked."""
    return _forks


def leave_copy() -> None:
    """End the process at once if it is a copy, which the engine has made by forking."""
    if os.getpid() != _process:
        os._exit(0)


class Output:
    """What is written to a file that stands for the standard output and error."""

    def __init__(self, file: int):
        self._file = file
        self._seen = os.fstat(file).st_size

    def new(self) -> str:
        """Give what was written since the last time."""
        sys.stdout.flush()
        sys.stderr.flush()
        size = os.fstat(self._file).st_size
        text = os.pread(self._file, size - self._seen, self._seen)
        self._seen = size
        return text.decode(errors="replace")
