"""The folder of a cluster: its key, its published address, its state and its logs."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path

from gt import _gt
from gt._guarded import GuardedFolder
from gt.cluster.errors import ClusterError


class ClusterFolder:
    """A folder that only its owner may enter, with what a cluster's processes share.

    `key` is the cluster's key, `address` the file in which its server publishes its address,
    `state` the folder from which the server resumes, and `logs` has a file for each process.
    """

    def __init__(self, path: str | os.PathLike[str] | None):
        """Make a folder, or use one that exists; None for one that ends with this process."""
        self.is_temporary = path is None
        self._lock: int | None = None
        self._guard: GuardedFolder | None = None
        if path is None:
            self.path = Path(tempfile.mkdtemp(prefix="gt-cluster-"))
            self._guard = GuardedFolder(self.path)
        else:
            self.path = Path(path).expanduser().absolute()
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(mode=0o700, exist_ok=True)
        _FOLDERS.add(self)

    @property
    def key(self) -> Path:
        """Return the path of the key, which is made when it is first asked for."""
        path = self.path / "key"
        if not path.exists():
            draft = self.path / f".key-{os.getpid()}"
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w") as key:
                key.write(_gt.make_key() + "\n")
            try:
                # Fails if another process was faster: its key counts.
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path

    @property
    def address(self) -> Path:
        """Return the path of the file in which the server publishes its address."""
        return self.path / "address"

    @property
    def state(self) -> Path:
        """Return the folder of the server's state."""
        return self.path / "state"

    @property
    def logs(self) -> Path:
        """Return the folder of the logs."""
        return self.path / "logs"

    def read_logs(self, lines: int | None = None) -> dict[str, str]:
        """Return the last lines of each log, or all, by the name of the process."""
        found = {}
        for path in sorted(self.logs.glob("*.log")):
            text = path.read_text(errors="replace")
            kept = text.splitlines()[-lines:] if lines else text.splitlines()
            found[path.stem] = "".join(f"{line}\n" for line in kept)
        return found

    def claim(self) -> None:
        """Have the folder alone until `remove`.

        Raises:
            ClusterError: another program has it.
        """
        lock = os.open(self.path / "claim", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise ClusterError(
                f"another program uses the folder {self.path}: it has a cluster there\n"
                "  hint: give each cluster a folder of its own"
            ) from None
        self._lock = lock

    def check_key(self) -> None:
        """Make the key, or check the one that exists.

        Raises:
            ClusterError: others may use it.
        """
        if self.key.stat().st_mode & 0o077:
            raise ClusterError(
                f"{self.key} is not safe: others may use it; make it private with chmod 600"
            )

    def release(self) -> None:
        """Leave the folder as it is."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Leave the folder, and remove it if it is temporary."""
        self.release()
        if self.is_temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._guard is not None:
            self._guard.end()
            self._guard = None

    def forget(self) -> None:
        """Close what a forked child has inherited: the folder is its parent's."""
        self.release()
        if self._guard is not None:
            self._guard.forget()
            self._guard = None


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a file that readers see as a whole or not at all.

    Args:
        path: the file.
        text: all that is in it.
        mode: its permissions, less those that the process's mask takes.
    """
    draft = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(file, "w") as out:
        out.write(text)
    draft.replace(path)


def _forget_all() -> None:
    for folder in list(_FOLDERS):
        folder.forget()


_FOLDERS: weakref.WeakSet[ClusterFolder] = weakref.WeakSet()
os.register_at_fork(after_in_child=_forget_all)
