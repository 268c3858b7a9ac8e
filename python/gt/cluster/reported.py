"""What a cluster has and reports: its folder, its address and its status."""

from __future__ import annotations

import abc
import os
from typing import Any, ClassVar

from gt.cluster.checks import checked_name, checked_size
from gt.cluster.errors import ClusterError
from gt.cluster.folder import ClusterFolder
from gt.cluster.status import ClusterStatus, read_status


class ReportedCluster(abc.ABC):
    """The part of :class:`gt.cluster.Cluster` that changes nothing."""

    #: The name of the system, as in `gt cluster up KIND`.
    kind: ClassVar[str]
    #: What `scale` counts.
    unit: ClassVar[str] = "worker"

    def __init__(self, size: int, name: str | None, folder: str | os.PathLike[str] | None):
        """Describe a cluster of a size; nothing is started yet."""
        self.name = f"gt-{os.getpid()}" if name is None else checked_name(name)
        self._size = checked_size(size, self.unit)
        self._given_folder = folder
        self._folder: ClusterFolder | None = None
        #: What has failed in the background, by what it was.
        self._troubles: dict[str, str] = {}
        self._last_error = ""

    @abc.abstractmethod
    def _notes(self) -> list[str]:
        """Return what the scheduler says, or what has failed, a line each."""

    def logs(self, lines: int | None = None) -> dict[str, str]:
        """Return the last lines of each process's log, or all, by the name of the process."""
        return self.folder.read_logs(lines)

    @property
    def folder(self) -> ClusterFolder:
        """Return the folder with the key, the address and the logs."""
        folder = self._folder
        if folder is None:
            raise ClusterError(
                f"the {self.kind} cluster '{self.name}' is not started: call start()"
            )
        return folder

    @property
    def key_file(self) -> str:
        """Return the path of the file with the key."""
        return str(self.folder.key)

    @property
    def address(self) -> str:
        """Return the address for `gt.connect`, which also finds the key."""
        return f"file://{self.folder.address}"

    @property
    def is_running(self) -> bool:
        """Return whether it was started, and not closed since."""
        return self._folder is not None

    @property
    def size(self) -> int:
        """Return how many workers, nodes, pods or hosts it is to have."""
        return self._size

    def status(self) -> ClusterStatus:
        """Return what it has now."""
        report = self.report()
        return ClusterStatus(
            kind=self.kind,
            name=self.name,
            address=self._published(),
            wanted=self._size,
            unit=self.unit,
            workers=report.get("workers", []),
            sessions=report.get("sessions", []),
            notes=self.notes(),
        )

    def notes(self) -> list[str]:
        """Return what the scheduler says, and what has failed, a line each."""
        troubles = [line for text in self._troubles.values() for line in text.splitlines()]
        return [*self._notes(), *troubles] if self.is_running else []

    def report(self) -> dict[str, Any]:
        """Return what the server reports, as `gt top --once --json` does; empty without one."""
        folder = self._folder
        if folder is None or self._published() is None:
            return {}
        try:
            return read_status(f"file://{folder.address}", str(folder.key))
        except ConnectionError as error:
            self._last_error = str(error)
            return {}

    def note(self, what: str, text: str | None) -> None:
        """Keep what has failed in the background as a note; None if it works again."""
        if text is None:
            self._troubles.pop(what, None)
        else:
            self._troubles[what] = text

    def _published(self) -> str | None:
        folder = self._folder
        if folder is None:
            return None
        try:
            return folder.address.read_text().strip() or None
        except FileNotFoundError:
            return None
