"""Programs that end with this process, however that ends: ssh, and one that removes a folder."""

from __future__ import annotations

import select
import subprocess
import sys
from pathlib import Path

from gt.session import ssh_guard

#: Removes a folder when the input ends; what ends then may still write to it.
_REMOVE = 'read x; rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }'


class Guarded:
    """A program that ends when its standard input does, which this process holds."""

    def __init__(self, command: list[str], *, keeps_terminal: bool):
        """Start it; without the terminal, no Ctrl-C reaches it and it cannot ask."""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=not keeps_terminal,
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


class GuardedSsh(Guarded):
    """A run of ssh: see `ssh_guard`."""

    def __init__(self, output: Path, errors: Path, command: list[str]):
        """Start it, with files for its output and errors, which are emptied."""
        for path in (output, errors):
            path.write_bytes(b"")
        script = [sys.executable, "-I", "-S", ssh_guard.__file__, str(output), str(errors)]
        super().__init__([*script, *command], keeps_terminal=True)
        self._status: int | None = None

    def status(self) -> int | None:
        """Return ssh's exit status, negative for a signal, or None while it runs."""
        if self._status is None and self._process.stdout is not None:
            poll = select.poll()
            poll.register(self._process.stdout, select.POLLIN)
            if poll.poll(0):
                # Nothing is read if the guard was killed.
                self._status = int(self._process.stdout.read(16) or 255)
        return self._status
