"""Runs of ssh that end with this process, however that ends."""

from __future__ import annotations

import select
import sys
from pathlib import Path

from gt._guarded import Guarded
from gt.session import ssh_guard


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
