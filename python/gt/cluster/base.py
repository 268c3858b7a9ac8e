"""What all clusters have in common."""

from __future__ import annotations

import abc
import os
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from gt.cluster.adaptive import Adaptive, AdaptiveRule
from gt.cluster.errors import ClusterError
from gt.cluster.folder import ClusterFolder
from gt.cluster.status import ClusterStatus, read_status

if TYPE_CHECKING:
    from typing_extensions import Self


class Cluster(abc.ABC):
    """A server with workers, which this program starts and ends.

        with gt.cluster.Local(workers=2) as cluster:
            gt.connect(cluster)
            print((gt.ones(3) + 1).tolist())

    Use it in a `with` statement, or call `start` and `close`. Where nothing is left running when
    the program dies, the class says so.
    """

    #: The name of the system, as in `gt cluster up KIND`.
    kind: ClassVar[str]
    #: What `scale` counts.
    unit: ClassVar[str] = "worker"

    def __init__(self, size: int, name: str | None, folder: str | os.PathLike[str] | None):
        """Describe a cluster of a size; nothing is started yet."""
        self.name = name or f"gt-{os.getpid()}"
        self._size = checked_size(size, self.unit)
        self._given_folder = folder
        self._folder: ClusterFolder | None = None
        self._adaptive: Adaptive | None = None
        self._owner = os.getpid()

    # What each system does in its own way.

    @abc.abstractmethod
    def script(self) -> str:
        """Return exactly what `start` runs or submits, as text."""

    @abc.abstractmethod
    def _launch(self) -> None:
        """Start the server and the workers."""

    @abc.abstractmethod
    def _resize(self, size: int) -> None:
        """Start or drain workers, so that there are as many."""

    @abc.abstractmethod
    def _shut_down(self) -> None:
        """End everything, also after a start that failed."""

    @abc.abstractmethod
    def _notes(self) -> list[str]:
        """Return what the scheduler says, or what has failed, a line each."""

    @abc.abstractmethod
    def _failure(self) -> str | None:
        """Return why the cluster cannot start any more, with the program's own words, or None."""

    def logs(self, lines: int | None = None) -> dict[str, str]:
        """Return the last lines of each process's log, or all, by the name of the process."""
        return self.folder.read_logs(lines)

    # What all do in the same way.

    @property
    def folder(self) -> ClusterFolder:
        """Return the folder with the key, the address and the logs."""
        if self._folder is None:
            raise ClusterError(
                f"the {self.kind} cluster '{self.name}' is not started: call start()"
            )
        return self._folder

    @property
    def address(self) -> str:
        """Return the address for `gt.connect`, which also finds the key."""
        return f"file://{self.folder.address}"

    @property
    def is_running(self) -> bool:
        """Return whether it was started, and not closed since."""
        return self._folder is not None

    def start(self, timeout: float = 120.0) -> Self:
        """Start the server and the workers; return when all serve.

        Args:
            timeout: the seconds after which a cluster that is not complete has failed.

        Raises:
            ClusterError: it cannot be started; nothing is left running.
        """
        if self.is_running:
            raise ClusterError(f"the {self.kind} cluster '{self.name}' is started already")
        folder = self._open_folder()
        folder.claim()
        self._folder, self._owner = folder, os.getpid()
        try:
            self._launch()
            self._await_workers(timeout)
        except BaseException:
            self.close()
            raise
        return self

    def scale(self, size: int) -> None:
        """Set how many workers there are (nodes, pods or hosts, as the class says).

        Returns at once: what is added joins later, what is removed first hands over what it has.

        Raises:
            ValueError: the size is negative.
        """
        size = checked_size(size, self.unit)
        if self._adaptive is not None:
            self._adaptive.stop()
            self._adaptive = None
        self._set_size(size)

    def adapt(self, minimum: int, maximum: int, *, idle: float = 60.0) -> None:
        """From now on, have as many workers as there is work for.

        While workers are busy and sessions have work queued, their number doubles, up to the
        maximum; when no session has had work for some time, it falls to the minimum. `scale` ends
        this.

        Args:
            minimum: the least number; 0 is possible if the maximum is not.
            maximum: the greatest number.
            idle: the seconds without work after which workers are drained.

        Raises:
            ValueError: the numbers do not fit.
        """
        rule = AdaptiveRule(minimum, maximum, idle)
        if self._adaptive is not None:
            self._adaptive.stop()
        self._set_size(min(max(self._size, minimum), maximum))
        self._adaptive = Adaptive(self, rule)

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
            notes=self._notes() if self.is_running else [],
        )

    def report(self) -> dict[str, Any]:
        """Return what the server reports, as `gt top --once --json` does; empty without one."""
        if self._published() is None:
            return {}
        try:
            return read_status(self.address)
        except ConnectionError:
            return {}

    def close(self) -> None:
        """End the workers, which hand over nothing, and the server. Nothing is left running.

        A forked child does nothing here: the cluster is its parent's.
        """
        if os.getpid() != self._owner:
            return
        if self._adaptive is not None:
            self._adaptive.stop()
            self._adaptive = None
        if self._folder is None:
            return
        try:
            self._shut_down()
        finally:
            self._folder.remove()
            self._folder = None

    def __enter__(self) -> Self:
        """Start it, unless it is started."""
        return self if self.is_running else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Return a short text."""
        state = "running" if self.is_running else "not started"
        return (
            f"<gt.cluster.{type(self).__name__} '{self.name}': {self._size} {self.unit}s, {state}>"
        )

    def _open_folder(self) -> ClusterFolder:
        """Return the folder of a cluster that starts."""
        return ClusterFolder(self._given_folder)

    def _set_size(self, size: int) -> None:
        if not self.is_running:
            raise ClusterError(
                f"the {self.kind} cluster '{self.name}' is not started: call start()"
            )
        self._resize(size)
        self._size = size

    def _published(self) -> str | None:
        if self._folder is None:
            return None
        try:
            return self._folder.address.read_text().strip() or None
        except FileNotFoundError:
            return None

    def _expected_workers(self) -> int:
        """Return how many workers serve when the cluster is complete."""
        return self._size

    def _await_workers(self, timeout: float, waited: float = 0.0) -> None:
        """Wait until all workers serve, of some seconds of which some have passed."""
        until = time.monotonic() + timeout - waited
        while True:
            serving = len(self.report().get("workers", []))
            if serving >= self._expected_workers() and self._published() is not None:
                return
            failure = self._failure()
            if failure is not None:
                raise ClusterError(
                    f"the {self.kind} cluster '{self.name}' did not start: {failure}"
                )
            if time.monotonic() > until:
                notes = "".join(f"\n  {note}" for note in self._notes())
                raise ClusterError(
                    f"the {self.kind} cluster '{self.name}' is not complete after {timeout:g} s: "
                    f"{serving} of {self._expected_workers()} workers serve{notes}"
                )
            time.sleep(0.05)


def checked_size(size: int, unit: str) -> int:
    """Return a number of workers; it is checked."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"the number of {unit}s must be an int, not {type(size).__name__}")
    if size < 0:
        raise ValueError(f"the number of {unit}s is {size}, expected 0 or more")
    return size
