"""The clusters that `gt cluster up` has started, by name."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gt.cluster.errors import ClusterError
from gt.cluster.folder import ClusterFolder, write_text

#: What a name may consist of: it is that of a folder, and of jobs and pods.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")

#: How long a cluster whose record is gone may take to leave its folder, in seconds.
_LEAVE_WITHIN = 30.0


class DamagedError(ClusterError):
    """The record of a cluster cannot be read."""

    __module__ = "gt.cluster.started"


def clusters_folder() -> Path:
    """Return the folder of all clusters of this user: GT_CLUSTERS, or ~/.gt/clusters."""
    given = os.environ.get("GT_CLUSTERS")
    return Path(given).expanduser().absolute() if given else Path.home() / ".gt" / "clusters"


@dataclass(frozen=True)
class StartedCluster:
    """A cluster that outlives the command that started it."""

    name: str
    kind: str
    #: The arguments of its class.
    arguments: dict[str, Any] = field(default_factory=dict)
    #: The process that owns it, if one does, and when that started, in the system's ticks.
    process: int | None = None
    since: str | None = None
    #: The machine of that process, and which of its boots: other ones may have the same folder.
    host: str | None = None
    boot: str | None = None
    #: If it adapts: the least and the greatest size, and the seconds without work after which it
    #: has the least.
    adapt: Sequence[float] | None = None
    #: How many workers, nodes, pods or hosts it is to have, as far as its owner knows.
    size: int | None = None

    @property
    def folder(self) -> Path:
        """Return its folder."""
        return clusters_folder() / self.name

    def write(self) -> None:
        """Write it, as a whole."""
        write_text(self.folder / "up.json", json.dumps(asdict(self), indent=1) + "\n")

    def remove(self) -> None:
        """Remove it, with its key and its logs."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_there(self) -> bool:
        """Return whether it was not removed."""
        try:
            os.stat(self.folder / "up.json")
        except OSError as error:
            return error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
        return True

    def owned_here(self) -> StartedCluster:
        """Return it with this process as its owner."""
        return replace(
            self,
            process=os.getpid(),
            since=start_of(os.getpid()),
            host=socket.gethostname(),
            boot=boot(),
        )

    def is_elsewhere(self) -> bool:
        """Return whether the process that owns it is one of another machine."""
        return self.process is not None and self.host not in (None, socket.gethostname())

    def is_owned(self) -> bool:
        """Return whether the process that owns it is alive, on this machine."""
        if self.process is None or self.is_elsewhere() or self.boot not in (None, boot()):
            return False
        return start_of(self.process) == self.since

    def refuse_elsewhere(self) -> None:
        """Check that its owner is one of this machine.

        Raises:
            ClusterError: it is not.
        """
        if self.is_elsewhere():
            raise ClusterError(
                f"the owner of the cluster '{self.name}' runs on {self.host}, not here\n"
                f"  hint: use `gt cluster` there, or remove {self.folder / 'up.json'}: the owner "
                "then closes the cluster"
            )


def checked_name(name: str) -> str:
    """Return a name for a cluster; it is checked.

    Raises:
        ClusterError: it is not valid.
    """
    if not _NAME.fullmatch(name):
        raise ClusterError(
            f"the name is '{name}', expected 1 to 40 of a-z, 0-9 and '-', with a letter or a digit "
            "at both ends"
        )
    return name


def read_record(name: str) -> StartedCluster:
    """Return the cluster of a name.

    Raises:
        ClusterError: there is none.
    """
    path = clusters_folder() / checked_name(name) / "up.json"
    try:
        return StartedCluster(**{**json.loads(path.read_text()), "name": name})
    except (FileNotFoundError, NotADirectoryError):
        others = ", ".join(all_names()) or "none"
        raise ClusterError(
            f"there is no cluster '{name}'\n  hint: there are {others}; `gt cluster up` starts one"
        ) from None
    except (ValueError, TypeError) as error:
        raise DamagedError(
            f"{path} is damaged: {error}\n  hint: `gt cluster down {name}` removes it"
        ) from None


def all_names() -> list[str]:
    """Return the names of all clusters."""
    return sorted(path.parent.name for path in clusters_folder().glob("*/up.json"))


def await_left(folder: Path) -> None:
    """Wait until no process has a cluster in a folder.

    Raises:
        ClusterError: one has, after a while.
    """
    found = ClusterFolder(folder)
    until = time.monotonic() + _LEAVE_WITHIN
    while True:
        try:
            found.claim()
        except ClusterError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            found.release()
            return


def boot() -> str | None:
    """Return the ID of this boot of this machine, if the system has one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def start_of(process: int) -> str | None:
    """Return when a process started, in the system's ticks; None if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # The state, and the 22nd field of all (proc(5)).
    return None if fields[0] == "Z" else fields[19]
