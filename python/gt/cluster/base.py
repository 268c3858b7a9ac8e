"""What all clusters have in common."""

from __future__ import annotations

import abc
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from gt.cluster.adaptive import Adaptive, AdaptiveRule
from gt.cluster.checks import checked_size
from gt.cluster.errors import ClusterError
from gt.cluster.folder import ClusterFolder
from gt.cluster.reported import ReportedCluster

if TYPE_CHECKING:
    from typing_extensions import Self


class Cluster(ReportedCluster):
    """A server with workers, which this program starts and ends.

        with gt.cluster.Local(workers=2) as cluster:
            gt.connect(cluster)
            print((gt.ones(3) + 1).tolist())

    Use it in a `with` statement, or call `start` and `close`. Where nothing is left running when
    the program dies, the class says so.
    """

    def __init__(self, size: int, name: str | None, folder: str | os.PathLike[str] | None):
        """Describe a cluster of a size; nothing is started yet."""
        super().__init__(size, name, folder)
        self._adaptive: Adaptive | None = None
        self._owner = os.getpid()
        # Held while it starts, is scaled or ends.
        self._lock = threading.RLock()
        self._is_starting = self._is_closing = False

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
    def _failure(self) -> str | None:
        """Return why the cluster cannot start any more, with the program's own words, or None."""

    # What all do in the same way.

    def start(self, timeout: float = 120.0) -> Self:
        """Start the server and the workers; return when all serve.

        Args:
            timeout: the seconds after which a cluster that is not complete has failed.

        Raises:
            ClusterError: it cannot be started; nothing is left running.
        """
        with self._lock:
            if self.is_running:
                raise ClusterError(f"the {self.kind} cluster '{self.name}' is started already")
            folder = self._open_folder()
            try:
                folder.claim()
                folder.check_key()
            except BaseException:
                folder.remove()
                raise
            self._folder, self._owner = folder, os.getpid()
            self._is_starting, self._is_closing, self._last_error = True, False, ""
            self._troubles.clear()
            try:
                self._launch()
                self._await_workers(timeout)
            except BaseException as error:
                self._close_failed(error)
                raise
            finally:
                self._is_starting = False
        return self

    def _close_failed(self, error: BaseException) -> None:
        """End what a start has left."""
        try:
            self.close()
        except Exception as second:
            if isinstance(error, Exception):
                raise ClusterError(f"{error}\n  not all has ended: {second}") from error

    def scale(self, size: int) -> None:
        """Set how many workers there are (nodes, pods or hosts, as the class says).

        Returns at once: what is added joins later, what is removed first hands over what it has.

        Raises:
            ValueError: the size is negative.
            ClusterError: it is not started, or cannot be scaled.
        """
        size = checked_size(size, self.unit)
        self._stop_adapting()
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
        self._stop_adapting()
        with self._lock:
            self._set_size(min(max(self._size, minimum), maximum))
            if self._adaptive is not None:
                self._adaptive.stop(waits=False)
            self._adaptive = Adaptive(self, rule)

    def close(self) -> None:
        """End the workers, which hand over nothing, and the server. Nothing is left running.

        A forked child does nothing here: the cluster is its parent's. If it fails, it can be called
        again.

        Raises:
            ClusterError: the scheduler does not end it.
        """
        if os.getpid() != self._owner:
            return
        # A start in another thread notices this, and fails.
        self._is_closing = True
        self._stop_adapting()
        with self._lock:
            if self._adaptive is not None:
                self._adaptive.stop(waits=False)
                self._adaptive = None
            if self._folder is not None:
                # If that fails, `close` can be called again.
                self._shut_down()
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

    def _stop_adapting(self) -> None:
        # Not while the lock is held: the thread may wait for it.
        adaptive, self._adaptive = self._adaptive, None
        if adaptive is not None:
            adaptive.stop()

    def _set_size(self, size: int) -> None:
        if self._is_starting:
            raise ClusterError(
                f"the {self.kind} cluster '{self.name}' is being started: scale it when it is"
            )
        with self._lock:
            if not self.is_running:
                raise ClusterError(
                    f"the {self.kind} cluster '{self.name}' is not started: call start()"
                )
            self._resize(size)
            self._size = size
            self._troubles.pop("size", None)

    def _adapt_size(self, is_stopped: threading.Event, decide: Callable[[int], int]) -> None:
        """Have the size that a rule decides, unless that has been stopped."""
        with self._lock:
            if not is_stopped.is_set():
                size = self._size
                wanted = decide(size)
                if wanted != size:
                    self._set_size(wanted)

    def _check_open(self) -> None:
        """Raise a ClusterError if another thread closes the cluster during its start."""
        if self._is_closing:
            raise ClusterError(f"the {self.kind} cluster '{self.name}' was closed in its start")

    def _expected_workers(self) -> int:
        """Return how many workers serve when the cluster is complete."""
        return self._size

    def _await_workers(self, timeout: float, waited: float = 0.0) -> None:
        """Wait until all workers serve, of some seconds of which some have passed."""
        until = time.monotonic() + timeout - waited
        while True:
            self._check_open()
            serving = len(self.report().get("workers", []))
            if serving >= self._expected_workers() and self._published() is not None:
                return
            failure = self._failure()
            if failure is not None:
                raise ClusterError(
                    f"the {self.kind} cluster '{self.name}' did not start: {failure}"
                )
            if time.monotonic() > until:
                said = [*self._notes(), *self._last_error.splitlines()]
                notes = "".join(f"\n  {note}" for note in said)
                raise ClusterError(
                    f"the {self.kind} cluster '{self.name}' is not complete after {timeout:g} s: "
                    f"{serving} of {self._expected_workers()} workers serve{notes}"
                )
            time.sleep(0.05)
