"""The objects of one cluster in Kubernetes, while this program uses them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gt.cluster.errors import ClusterError
from gt.cluster.kubernetes.api import KubernetesApi
from gt.cluster.kubernetes.lease import Lease
from gt.cluster.kubernetes.link import ServerLink
from gt.cluster.kubernetes.objects import least_available
from gt.cluster.kubernetes.pods import Object
from gt.cluster.kubernetes.removal import Made, remove
from gt.cluster.kubernetes.settings import PodSettings
from gt.cluster.kubernetes.troubles import Troubles, workloads

#: How often Kubernetes is asked about pods, in seconds.
EVERY = 0.5


@dataclass
class Running:
    """What was created, and this program's connections to it."""

    api: KubernetesApi
    settings: PodSettings
    connect: str
    made: list[Made] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Connect to nothing yet."""
        self._lease: Lease | None = None
        self._link: ServerLink | None = None
        self._asked = -EVERY
        self._failure: str | None = None

    def create(self, things: list[Object], wait: Callable[[Callable[[], bool]], None]) -> None:
        """Create the objects; the first owns the others.

        Args:
            things: the objects, of which the last has the workers.
            wait: waits until a function returns True.
        """
        created = time.monotonic()
        *first, workers = things
        for thing in first:
            self._create(thing)
            if self.settings.lease is not None and self._lease is None:
                self._lease = Lease(self.api, self.settings.server, self.settings.lease, created)
        if self.settings.queue:
            # Workers that are admitted first would wait without a limit for the server.
            wait(self._is_admitted)
        self._create(workers)

    def _create(self, thing: Object) -> None:
        if self.made:
            root = self.made[0]
            # It is no controller: Kueue would count the pods of a controlled object as the owner's.
            owner = {
                "apiVersion": "batch/v1",
                "kind": root.kind,
                "name": root.name,
                "uid": root.uid,
            }
            if root.kind == "Deployment":
                owner["apiVersion"] = "apps/v1"
            thing["metadata"]["ownerReferences"] = [owner]
        made = self.api.create(thing)
        self.made.append(Made(thing["kind"], made["metadata"]["name"], made["metadata"]["uid"]))

    def _is_admitted(self) -> bool:
        kind, name = workloads(self.settings)[0]
        status = self.api.get(kind, name).get("status", {})
        # Kueue gates the pods of a Deployment, and suspends a Job.
        return bool(status.get("startTime") or status.get("readyReplicas"))

    def address(self) -> str | None:
        """Return where the server is reached, or None if it is not ready."""
        if self._link is None:
            self._link = ServerLink(self.api, self.settings, self.connect)
        return self._link.address if self._link.is_ready() else None

    def size(self) -> int:
        """Return how many pods with workers Kubernetes is to have."""
        kind, name = workloads(self.settings)[1]
        if self.settings.job_set:
            return int(self.api.get("Job", f"{name}-workers-0")["spec"]["parallelism"])
        return int(self.api.get(kind, name)["spec"]["replicas"])

    def resize(self, size: int) -> None:
        """Set how many pods with workers there are."""
        name = self.settings.workers
        if not self.settings.job_set:
            self.api.scale("Deployment", name, size)
            return
        path = "/spec/replicatedJobs/0/template/spec/parallelism"
        change: list[Object] = [{"op": "replace", "path": path, "value": size}]
        try:
            self.api.patch("JobSet", name, change)
        except ClusterError as error:
            if "immutable" not in str(error):
                raise
            # Versions before elastic JobSets leave it to the Job.
            self.api.patch("Job", f"{name}-workers-0", {"spec": {"parallelism": size}})
        self.api.patch("PodDisruptionBudget", name, {"spec": least_available(size)})

    def logs(self, lines: int | None) -> dict[str, str]:
        """Return the last lines of each pod's log, or all, by the name of the pod."""
        found = {}
        for pod in self.api.pods(self.settings.selector):
            name = pod["metadata"]["name"]
            for container in pod["spec"]["containers"]:
                try:
                    found[name] = self.api.log(name, container["name"], lines)
                except ClusterError:
                    continue  # It has not started yet, or is gone.
        return found

    def failure(self) -> str | None:
        """Return why it cannot start, or None; Kubernetes is asked now and then."""
        if self._lease is not None and self._lease.is_lost:
            return self._lease.failure
        if time.monotonic() - self._asked >= EVERY:
            try:
                self._failure = Troubles(self.api, self.settings).failure()
            except ClusterError:
                self._failure = None  # It may answer again; every wait has a limit.
            self._asked = time.monotonic()
        return self._failure

    def notes(self) -> list[str]:
        """Return what Kubernetes says, and what has failed, a line each."""
        found = [of.failure for of in (self._lease, self._link) if of and of.failure]
        try:
            return [*found, *Troubles(self.api, self.settings).notes()]
        except ClusterError as error:
            return [*found, *str(error).splitlines()]

    def disconnect(self) -> None:
        """End this program's connections, and leave the objects."""
        self._stop()
        self.api.close()

    def remove(self) -> None:
        """Remove the objects, and wait until all pods have ended."""
        self._stop()
        remove(self.api, self.settings, self.made)
        self.api.close()

    def _stop(self) -> None:
        if self._lease is not None:
            self._lease.stop()
        if self._link is not None:
            self._link.close()
        self._lease = self._link = None
