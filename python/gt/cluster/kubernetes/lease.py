"""The life of a cluster in Kubernetes while its owner lives.

The server is a Job with a deadline, and owns all other objects. Its owner moves the deadline on
while it lives. After the deadline, Kubernetes itself ends the Job, removes it at once and then all
that it owns: no pod needs permissions, and no program of ours has to be alive for it.
"""

from __future__ import annotations

import math
import threading
import time

from gt.cluster.errors import ClusterError
from gt.cluster.kubernetes.api import KubernetesApi, NotFoundError
from gt.cluster.kubernetes.pods import Object


class LeaseClock:
    """Computes the deadline of a Job, in seconds after its start, without comparing clocks.

    It has no clock: the caller passes the time.
    """

    def __init__(self, lease: float, created: float):
        """The Job is created at a time, or later."""
        self._lease, self._start, self._last = lease, created, created
        self._started: str | None = None

    def deadline(self, now: float) -> int:
        """Return the deadline that gives the Job at least the lease from now."""
        # One that has no start in the last answer may have started since.
        start = self._start if self._started is not None else self._last
        return math.ceil(now - start + self._lease)

    def seen(self, asked: float, started: str | None) -> None:
        """Note what an answer says of the Job's start; the question was asked at a time.

        A Job that waits in a queue has no start, and one that is suspended has another start later.
        """
        if started != self._started:
            # It started after the last answer that did not say so.
            self._started, self._start = started, self._last
        self._last = asked


class Lease:
    """A thread that moves the deadline on until it is stopped, or this program ends."""

    def __init__(self, api: KubernetesApi, job: str, lease: float, created: float):
        """Begin; the Job was created at a time of `time.monotonic`, or later."""
        self._api, self._job, self._every = api, job, lease / 4
        self._clock = LeaseClock(lease, created)
        self._is_stopped = threading.Event()
        #: Why the deadline was not moved on the last time, or None.
        self.failure: str | None = None
        #: Whether the Job does not exist any more.
        self.is_lost = False
        self._thread = threading.Thread(target=self._run, name="gt-lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave the deadline where it is."""
        self._is_stopped.set()
        self._thread.join(30)

    def _run(self) -> None:
        # Soon after the creation, when the Job has a start.
        pause = min(1.0, self._every)
        while not self._is_stopped.wait(pause):
            pause = self._every
            asked = time.monotonic()
            change: Object = {"spec": {"activeDeadlineSeconds": self._clock.deadline(asked)}}
            try:
                job = self._api.patch("Job", self._job, change)
            except NotFoundError:
                self.failure = f"its Job '{self._job}' has been removed"
                self.is_lost = True
                return
            except ClusterError as error:
                self.failure = f"its deadline cannot be moved on: {error}"
                pause = min(1.0, self._every)
                continue
            self.failure = None
            self._clock.seen(asked, job.get("status", {}).get("startTime"))
