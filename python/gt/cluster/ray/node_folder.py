"""The folder of a cluster on a node of Ray: logs, state, and how often programs have failed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

#: What the names of these folders begin with; that of the cluster follows.
_PREFIX = "gt-ray-"

#: A folder that no actor has used for so long is removed, in seconds: its owner was killed.
_KEPT = 3600.0

#: A program that has run for so long counts as started, in seconds: its next failure is a first.
_STARTED_AFTER = 30.0

#: The first and the longest pause before a program is started again, in seconds.
_PAUSE = (0.5, 30.0)


class NodeFolder:
    """A folder in the node's temporary folder, which the actors of one cluster there share.

    An actor that Ray restarts finds it again.
    """

    def __init__(self, cluster: str):
        """Make the folder, or use the one that exists, and remove those of killed owners.

        Raises:
            PermissionError: it belongs to another user.
        """
        parent = Path(tempfile.gettempdir())
        _sweep(parent)
        self.path = parent / f"{_PREFIX}{cluster}"
        self.path.mkdir(mode=0o700, exist_ok=True)
        status = self.path.lstat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError(f"others may use the folder {self.path}")
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        os.utime(self._lock)

    def log(self, name: str) -> Path:
        """Return the path of the log of a program."""
        return self.path / f"{name}.log"

    def note_start(self, name: str) -> float:
        """Note that a program starts; return the seconds that it waits after failures before."""
        path = self.path / f"{name}.starts"
        now = time.time()
        try:
            since, failures = json.loads(path.read_text())
            failures = 0 if now - since >= _STARTED_AFTER else failures + 1
        except (OSError, ValueError, TypeError):
            failures = 0
        # The second failure in a row is the first that waits.
        pause = min(_PAUSE[0] * 2 ** (failures - 2), _PAUSE[1]) if failures > 1 else 0.0
        path.write_text(json.dumps([now + pause, failures]))
        return float(pause)

    def forget(self, name: str) -> None:
        """Remove the files of a program that has left, and the folder with the last one."""
        for path in (self.log(name), self.path / f"{name}.starts", self.path / f"{name}.address"):
            path.unlink(missing_ok=True)
        if {path.name for path in self.path.iterdir()} <= {"lock"}:
            self.remove()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove the folders of this user that no actor has locked for long."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / "lock", os.O_RDWR)
        except OSError:
            continue
        try:
            status = os.fstat(lock)
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _KEPT:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # Its actors run.
        finally:
            os.close(lock)
