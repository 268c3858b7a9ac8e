"""Programs that end with this process, however that ends; one of them removes a folder."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path

#: Removes a folder when the input ends; what ends then may still write to it.
_REMOVE = 'read x; rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }'


class Guarded:
    """A program that ends when its standard input does, which this process holds."""

    def __init__(self, command: list[str], *, keeps_terminal: bool, inherits: Collection[int] = ()):
        """Start it; without the terminal, no Ctrl-C reaches it and it cannot ask.

        Args:
            command: the program and its arguments.
            keeps_terminal: whether it has this process's terminal.
            inherits: descriptors that it also has, by the same numbers.
        """
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=not keeps_terminal,
            pass_fds=inherits,
        )

    def end(self) -> None:
        """End it, and wait until it has."""
        self._close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Close what a forked child has inherited: the program is its parent's."""
        self._close()
        # It is not the child's to wait for.
        self._process.returncode = 0

    def _close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()


class GuardedFolder(Guarded):
    """A folder that is removed at the end."""

    def __init__(self, folder: Path):
        """Guard a folder that exists."""
        super().__init__(["sh", "-c", _REMOVE, "sh", str(folder)], keeps_terminal=False)
