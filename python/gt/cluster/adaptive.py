"""The number of workers that the work asks for."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gt.cluster.base import Cluster

#: How often the server is asked, in seconds.
_EVERY = 1.0

#: How long there must be more work than the workers do before there are more of them, in seconds.
_BUSY_FOR = 3.0


class AdaptiveRule:
    """Decides how many workers there should be, from what the server reports.

    It doubles the number while there is more work than the workers do for some seconds, and falls
    to the minimum when there was none for longer. It has no clock: the caller passes the time.
    """

    def __init__(self, minimum: int, maximum: int, idle: float):
        """Check the numbers.

        Raises:
            ValueError: they do not fit.
        """
        if not 0 <= minimum <= maximum or maximum == 0:
            raise ValueError(
                f"adapt: minimum is {minimum} and maximum is {maximum}, expected 0 <= minimum <= "
                "maximum and maximum >= 1"
            )
        if not idle >= 0:
            raise ValueError(f"adapt: idle is {idle}, expected 0 seconds or more")
        self.minimum, self.maximum, self.idle = minimum, maximum, idle
        self._busy_since: float | None = None
        self._idle_since: float | None = None

    def decide(self, now: float, size: int, report: dict[str, Any]) -> int:
        """Return how many workers there should be.

        Args:
            now: the time in seconds.
            size: how many there should be so far.
            report: the report of the server.
        """
        size = min(max(size, self.minimum), self.maximum)
        has_work = any(session["open"] > 0 for session in report.get("sessions", []))
        self._idle_since = None if has_work else self._idle_since or now
        is_full = has_work and all(worker["queue"] > 0 for worker in report.get("workers", []))
        self._busy_since = (self._busy_since or now) if is_full else None
        if self._idle_since is not None and now - self._idle_since >= self.idle:
            return self.minimum
        if has_work and size == 0:
            return 1
        if self._busy_since is not None and now - self._busy_since >= _BUSY_FOR:
            # Those that are added join first.
            self._busy_since = now
            return min(max(2 * size, 1), self.maximum)
        return size


class Adaptive:
    """A thread that scales a cluster by a rule until it is stopped."""

    def __init__(self, cluster: Cluster, rule: AdaptiveRule):
        """Begin."""
        self._cluster, self._rule = cluster, rule
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gt-adapt", daemon=True)
        self._thread.start()

    def stop(self, *, waits: bool = True) -> None:
        """Leave the cluster at its size."""
        self._is_stopped.set()
        if waits and threading.current_thread() is not self._thread:
            self._thread.join(10)

    def _run(self) -> None:
        while not self._is_stopped.wait(_EVERY):
            try:
                decide = partial(self._decide, self._cluster.report())
                self._cluster._adapt_size(self._is_stopped, decide)
            except (RuntimeError, OSError, ValueError) as error:
                # The scheduler may accept it later.
                self._cluster.note("adapt", f"the number of workers does not adapt: {error}")
            else:
                self._cluster.note("adapt", None)

    def _decide(self, report: dict[str, Any], size: int) -> int:
        return self._rule.decide(time.monotonic(), size, report)
