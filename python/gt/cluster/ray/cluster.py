"""Clusters on Ray."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gt import _gt
from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError, said
from gt.cluster.folder import ClusterFolder, write_text
from gt.cluster.programs import WorkerOptions
from gt.cluster.ray.connection import Connection
from gt.cluster.ray.plan import STRATEGIES, Plan
from gt.cluster.ray.probe import Probe
from gt.cluster.ray.room import asks_too_much, refusal

if TYPE_CHECKING:
    from gt.cluster.ray.pool import Pool

#: The file in the folder of a kept cluster with what another process needs to find it.
_RECORD = "ray.json"

#: The namespace of kept actors, if none is named.
_NAMESPACE = "gt"


class Ray(Cluster):
    """A server and workers on Ray: an actor for each, in a placement group.

        with gt.cluster.Ray(workers=8, gpus_per_worker=1) as cluster:
            gt.connect(cluster)

    Each actor runs its program as a child process, which dies with it. When a program fails, its
    actor ends, and Ray restarts it; sessions continue. The actors end with this program, unless
    `keep` is true. Needs `pip install ray`, and GT on the nodes of Ray.

    Args:
        workers: the number of workers.
        address: where Ray is: "auto" for that of this machine, host:port, or ray://host:port. None
            for the connection of this program if it has called `ray.init`, else RAY_ADDRESS, else
            the Ray of this machine, which is started if there is none, and ends with the cluster.
        gpus_per_worker: the GPUs of each worker; one if Ray has any, if it is None.
        cpus_per_worker: the CPUs of each worker, which has as many threads.
        strategy: that of the placement group: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
        namespace: Ray's namespace of the actors.
        engine: the engine of the workers: native, pytorch, numpy, jax or module:Class.
        threads: the threads of each worker; its CPUs if it is None.
        memory: the memory for the tensors of each worker, such as "16GB"; equal parts of a node if
            it is None.
        name: the beginning of the actors' names.
        folder: where key, address and state are; a temporary folder if it is None. If the nodes
            have it, too, sessions also survive the server's node.
        server_options: further options of `gt server`.
        worker_options: further options of `gt worker`.
        runtime_env: Ray's environment of the actors.
        keep: whether they outlive this program: `attach` finds them again. Needs a folder, and a
            Ray that runs.
    """

    kind = "ray"

    def __init__(
        self,
        workers: int = 1,
        *,
        address: str | None = None,
        gpus_per_worker: float | None = None,
        cpus_per_worker: float = 1,
        strategy: str = "PACK",
        namespace: str | None = None,
        engine: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        name: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        server_options: Sequence[str] = (),
        worker_options: Sequence[str] = (),
        runtime_env: Mapping[str, Any] | None = None,
        keep: bool = False,
    ):
        """Describe a cluster; `start` starts it."""
        super().__init__(workers, name, folder)
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy is {strategy!r}, expected one of {', '.join(STRATEGIES)}")
        if not cpus_per_worker > 0:
            raise ValueError(f"cpus_per_worker is {cpus_per_worker}, expected more than 0")
        if gpus_per_worker is not None and not gpus_per_worker >= 0:
            raise ValueError(f"gpus_per_worker is {gpus_per_worker}, expected 0 or more")
        if keep and folder is None:
            raise ValueError("keep=True needs a folder, in which attach finds the cluster again")
        resources: dict[str, float] = {"CPU": cpus_per_worker}
        if gpus_per_worker:
            resources["GPU"] = gpus_per_worker
        self._plan = Plan(
            cluster=f"{self.name}-{secrets.token_hex(4)}",
            address=address,
            namespace=namespace or (_NAMESPACE if keep else None),
            strategy=strategy,
            worker=resources,
            is_kept=keep,
            has_gpu_if_any=gpus_per_worker is None,
            memory=None if memory is None else _gt.parse_size(memory),
            runtime_env=dict(runtime_env or {}),
            server_options=list(server_options),
            worker_options=WorkerOptions(engine, threads, memory, worker_options).arguments(),
        )
        if gpus_per_worker is not None:
            self._plan = self._plan.resolved(has_gpus=False)
        self._has_files = False
        self._connection: Connection | None = None
        self._pool: Pool | None = None

    @classmethod
    def attach(cls, folder: str | os.PathLike[str]) -> Ray:
        """Return the cluster that another process has started with `keep=True` in a folder.

        Its methods work as in that process; `close` ends it, and the end of this process does not.

            cluster = gt.cluster.Ray.attach("~/gt")
            print(cluster.status())

        Raises:
            ClusterError: there is none, or Ray cannot be reached.
        """
        path = Path(folder).expanduser().absolute() / _RECORD
        try:
            record = json.loads(path.read_text())
        except FileNotFoundError:
            raise ClusterError(f"no cluster is kept on Ray in the folder {path.parent}") from None
        plan = Plan(**record["plan"])
        self = cls(0, address=plan.address, name=record["name"], folder=path.parent, keep=True)
        self._plan = plan
        self._folder = ClusterFolder(path.parent)
        try:
            self._connect()
            self._has_files = True
            assert self._pool is not None
            self._size = self._pool.find()
        except ValueError as error:
            self.close()
            raise ClusterError(
                f"the ray cluster '{self.name}' does not run any more{said(str(error))}"
            ) from None
        except BaseException:
            self.detach()
            raise
        return self

    def detach(self) -> None:
        """Leave a kept cluster running, and end what this process has for it."""
        if self._pool is not None:
            self._pool.release()
        self._disconnect()
        if self._folder is not None:
            self._folder.release()
        self._folder = None

    def script(self) -> str:
        """Return what `start` asks of Ray, and the commands that the actors run, as text."""
        return self._plan.text(self.size)

    def logs(self, lines: int | None = None) -> dict[str, str]:
        """Return the last lines of each process's log, or all, by the name of the process."""
        return {} if self._pool is None else self._pool.logs(lines)

    def _connect(self) -> None:
        # Other clusters import this module, too, and do not need what the actors need.
        from gt.cluster.ray.pool import Pool
        from gt.cluster.ray.program_actor import Membership

        plan = self._plan
        self._connection = connection = Connection(
            plan.address, plan.namespace, plan.runtime_env, starts=not plan.is_kept
        )
        total = connection.ray.cluster_resources()
        plan = plan.resolved(has_gpus=total.get("GPU", 0) > 0)
        self._plan = plan = replace(plan, is_environment_of_job=connection.is_new)
        shared = None if self.folder.is_temporary else str(self.folder.path)
        key = self.folder.key.read_text().strip()
        membership = Membership(
            plan.cluster, key, plan.actor_name("server"), plan.namespace, shared=shared
        )
        self._pool = Pool(connection.ray, plan, membership, self._publish)

    def _publish(self, address: str) -> None:
        if self._published() != address:
            write_text(self.folder.address, f"{address}\n")

    def _launch(self) -> None:
        self._connect()
        assert self._pool is not None and self._connection is not None
        self._refuse_second(self._connection.ray)
        self._has_files = True
        self.folder.address.unlink(missing_ok=True)
        self._pool.groups.add_first(self.size)

    def _refuse_second(self, ray: Any) -> None:
        """Raise an error if a kept cluster runs in the folder."""
        try:
            plan = Plan(**json.loads((self.folder.path / _RECORD).read_text())["plan"])
            ray.get_actor(plan.actor_name("server"), namespace=plan.namespace)
        except (FileNotFoundError, ValueError):
            return
        raise ClusterError(
            f"a cluster is kept on Ray in the folder {self.folder.path} already: end it with "
            "gt.cluster.Ray.attach(folder).close()"
        )

    def _write_record(self, ray: Any) -> None:
        plan = dict(vars(self._plan))
        if not (plan["address"] or "").startswith("ray://"):
            plan["address"] = ray.get_runtime_context().gcs_address
        record = {"name": self.name, "plan": plan}
        write_text(self.folder.path / _RECORD, json.dumps(record, indent=1, default=str) + "\n")

    def _await_workers(self, timeout: float, waited: float = 0.0) -> None:
        since = time.monotonic() - waited
        assert self._pool is not None and self._connection is not None
        ray, first = self._connection.ray, self._pool.groups.first
        while first is not None and not first.is_ready():
            self._check_open()
            is_over = time.monotonic() - since > timeout
            is_local = self._connection.is_local
            if is_over or (is_local and asks_too_much(ray, self._plan, self.size)):
                limit = timeout if is_over else None
                raise ClusterError(refusal(ray, self._plan, self.size, first, limit))
            time.sleep(0.05)
        try:
            probe = Probe(ray, first, self._plan.actor_environment())
            while not probe.is_answered():
                self._check_open()
                if time.monotonic() - since > timeout:
                    raise ClusterError(
                        f"the ray cluster '{self.name}' is not complete after {timeout:g} s: "
                        "Ray runs no task on its nodes yet"
                    )
            if self._plan.is_kept:
                self._write_record(ray)
            self._pool.start(self.size)
        except ValueError as error:
            raise ClusterError(
                f"Ray refuses what the cluster '{self.name}' asks for{said(str(error))}"
            ) from None
        super()._await_workers(timeout, time.monotonic() - since)

    def _resize(self, size: int) -> None:
        assert self._pool is not None
        self._pool.scale(size)

    def _failure(self) -> str | None:
        return self._pool.failure() if self._pool else None

    def _notes(self) -> list[str]:
        if self._pool is None:
            return []
        failure = self._failure()
        notes = failure.splitlines() if failure else []
        for group in self._pool.groups.waiting():
            names = ", ".join(map(str, group.numbers))
            asked = self._plan.asked(len(group.numbers))
            notes.append(f"Ray has no room yet for worker {names}: {asked}")
        return notes

    def _shut_down(self) -> None:
        if self._pool is None and self._has_files and self._plan.is_kept:
            # An earlier try has failed, and its actors do not end with the connection.
            self._connect()
            assert self._pool is not None
            with suppress(ValueError):
                self._pool.find()
        try:
            if self._pool is not None:
                self._pool.end()
        finally:
            self._disconnect()
        for name in (_RECORD, "address") if self._has_files else ():
            (self.folder.path / name).unlink(missing_ok=True)
        self._has_files = False

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._pool = self._connection = None
