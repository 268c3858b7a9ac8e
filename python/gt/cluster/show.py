"""The logs of a machine's workers, shown as this process's output too."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

#: How often the logs are read, in seconds.
_EVERY = 0.2


class LogShow:
    """Writes what is appended to the logs of a folder to standard output, by whole lines.

    Schedulers keep the output of a process, and users find it there.
    """

    def __init__(self, logs: Path):
        """Begin with what is written from now on."""
        self._logs = logs
        self._read = {path: path.stat().st_size for path in logs.glob("*.log")}
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gt-logs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Show what is left, and end."""
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped.wait(_EVERY):
            self._show()
        self._show()

    def _show(self) -> None:
        for path in sorted(self._logs.glob("*.log")):
            with path.open("rb") as log:
                log.seek(self._read.get(path, 0))
                new = log.read()
            # The rest of a line comes later.
            whole = new[: new.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            for line in whole.decode(errors="replace").splitlines():
                sys.stdout.write(f"{path.stem}: {line}\n")
        sys.stdout.flush()
