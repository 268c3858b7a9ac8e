"""How a cluster in Kubernetes starts, is asked and ends."""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.folder import write_text
from gt.cluster.kubernetes.api import KubernetesApi
from gt.cluster.kubernetes.exits import ending_with_program
from gt.cluster.kubernetes.manifest import parsed
from gt.cluster.kubernetes.record import Record
from gt.cluster.kubernetes.removal import Made
from gt.cluster.kubernetes.running import EVERY, Running
from gt.cluster.kubernetes.settings import PodSettings

if TYPE_CHECKING:
    from typing_extensions import Self


class Lifecycle(Cluster):
    """A cluster in Kubernetes, whose description a subclass sets."""

    _settings: PodSettings
    _context: str | None
    _connect: str
    _keep: bool
    _arguments: dict[str, Any]
    _running: Running | None = None
    _record: Record | None = None
    _until = math.inf
    _forget: Callable[[], None] | None = None

    @abc.abstractmethod
    def manifest(self, *, include_key: bool = False) -> str:
        """Return the objects as YAML."""

    def detach(self) -> None:
        """Leave the cluster running: end only this program's connection to it.

        A cluster that is not kept ends after its lease.
        """
        self._leave()
        if self._running is not None:
            self._running.disconnect()
        if self._folder is not None:
            if self._connect == "forward":
                # The port ends with this program.
                self._folder.address.unlink(missing_ok=True)
            self._folder.remove()
        self._folder = self._running = None

    def start(self, timeout: float = 120.0) -> Self:
        """Create the objects; return when all workers serve.

        Args:
            timeout: the seconds after which a cluster that is not complete has failed: give more
                where images are large, nodes are added or a queue is long.

        Raises:
            ClusterError: it cannot be started; nothing is left in Kubernetes.
        """
        self._until = time.monotonic() + timeout
        return super().start(timeout)

    def _connected(self, made: Sequence[Made] = ()) -> Running:
        api = KubernetesApi(self._context, self._settings.namespace)
        self._running = Running(api, self._settings, self._connect, list(made))
        return self._running

    def _launch(self) -> None:
        running = self._connected()
        self._forget = ending_with_program(self, is_kept=self._keep)
        things = parsed(self.manifest(include_key=True))
        running.create(things, lambda is_true: self._await("its server is admitted", is_true))
        if not self.folder.is_temporary:
            self._record = Record(self.folder.path, self._arguments, running.made)
            self._record.write()
        self._await("its server is ready", self._publish)

    def _await(self, what: str, is_true: Callable[[], bool]) -> None:
        while not is_true():
            self._check_open()
            failure = self._failure()
            if failure is not None:
                raise ClusterError(f"the kubernetes cluster '{self.name}' did not start: {failure}")
            if time.monotonic() > self._until:
                notes = "".join(f"\n  {note}" for note in self._notes())
                raise ClusterError(
                    f"the kubernetes cluster '{self.name}' did not start: it waited in vain until "
                    f"{what}{notes}"
                )
            time.sleep(EVERY)

    def _publish(self) -> bool:
        """Write where the server is reached to the folder; return whether it is ready."""
        address = self._started().address()
        if address is None:
            return False
        write_text(self.folder.address, f"{address}\n")
        return True

    def _started(self) -> Running:
        if self._running is None:
            raise ClusterError(f"the kubernetes cluster '{self.name}' is not started: call start()")
        return self._running

    def _leave(self) -> None:
        """Do nothing more at the end of this program."""
        if self._forget is not None:
            self._forget()
            self._forget = None

    def _expected_workers(self) -> int:
        return self._size * self._settings.workers_per_pod

    def _resize(self, size: int) -> None:
        if self._settings.job_set:
            check_job_set(size)
        self._started().resize(size)

    def _failure(self) -> str | None:
        return self._running.failure() if self._running is not None else None

    def _notes(self) -> list[str]:
        return self._running.notes() if self._running is not None else []

    def _shut_down(self) -> None:
        self._leave()
        self.folder.address.unlink(missing_ok=True)
        if self._running is not None:
            self._running.remove()
            self._running = None
        if self._record is not None:
            self._record.remove()


def check_job_set(size: int) -> None:
    """Raise a ValueError if a JobSet cannot have a number of pods."""
    if size < 1:
        raise ValueError(f"the number of pods is {size}, but a JobSet has at least 1")
