"""Clusters as jobs of SLURM."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError, said
from gt.cluster.folder import ClusterFolder
from gt.cluster.programs import WorkerOptions
from gt.cluster.slurm.commands import JobState, SlurmRefusal, cancel, job_states, requested_gpus
from gt.cluster.slurm.commands import submit as submit_script
from gt.cluster.slurm.end import end_jobs
from gt.cluster.slurm.record import ClusterRecord, JobRecord, changed_record, read_record
from gt.cluster.slurm.refusals import why_refused
from gt.cluster.slurm.script import JobRequest

#: How often SLURM is asked for the states of jobs, in seconds.
_EVERY = 1.0

#: How long the guard may take to end, in seconds.
_GUARD_LIMIT = 5.0


class Slurm(Cluster):
    """A server and workers as jobs of SLURM, with one worker for each GPU of their nodes.

        with gt.cluster.Slurm(nodes=4, partition="gpu", gpus_per_node=8, time="8:00:00") as cluster:
            gt.connect(cluster)

    The first job has the server and workers on all its nodes. `scale` submits a further job for
    each further node; of the first job's nodes, those that are too many stay allocated, without
    workers. The jobs end within 5 s of this program's death, and within 20 s if its machine fails;
    with `keep` they go on without it.

    Some time before the wall time, and when SLURM preempts a job, its workers hand over what they
    have. With `restarts`, SLURM runs the jobs again then, and sessions continue there.

    Args:
        nodes: the number of nodes.
        partition: the partition, as of `sbatch`.
        account: the account that is charged, as of `sbatch`.
        qos: the quality of service, as of `sbatch`.
        gpus_per_node: the GPUs of each node, such as 8 or "a100:8".
        cpus_per_task: the cores of each node.
        time: the wall time, such as "8:00:00".
        constraint: the features that nodes must have, as of `sbatch`.
        workers_per_node: the workers of a node; one for each of its GPUs, or one, if it is None.
        engine: the engine of the workers: native, pytorch, numpy, jax or module:Class.
        threads: the threads of each worker; the node's cores, divided equally, if it is None.
        memory: the memory for the tensors of each worker, such as "16GB".
        name: the name of the cluster and of its jobs.
        folder: where key, address, logs and state are, on a file system that all nodes share; a
            new one in ~/.gt/clusters, which is removed at the end, if it is None.
        server_options: further options of `gt server`.
        worker_options: further options of `gt worker`.
        sbatch_options: further options of `sbatch`, such as "--exclusive" or "--mem=64G".
        drain_seconds: how long before the wall time the workers begin to hand over.
        restarts: how often SLURM is to run the jobs again after their wall time.
        keep: whether the cluster stays when this program ends without `close`.
    """

    kind = "slurm"
    unit = "node"

    def __init__(
        self,
        nodes: int = 1,
        *,
        partition: str | None = None,
        account: str | None = None,
        qos: str | None = None,
        gpus_per_node: int | str | None = None,
        cpus_per_task: int | None = None,
        time: str | int | None = None,
        constraint: str | None = None,
        workers_per_node: int | None = None,
        engine: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        name: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        server_options: Sequence[str] = (),
        worker_options: Sequence[str] = (),
        sbatch_options: Sequence[str] = (),
        drain_seconds: float = 30.0,
        restarts: int = 0,
        keep: bool = False,
    ):
        """Describe a cluster; `start` submits it."""
        super().__init__(nodes, name, folder)
        if nodes < 1:
            raise ValueError(f"the number of nodes is {nodes}, expected 1 or more")
        if not 1 <= drain_seconds <= 65535:
            raise ValueError(f"drain_seconds is {drain_seconds}, expected 1 to 65535 seconds")
        if workers_per_node is not None and workers_per_node < 1:
            raise ValueError(f"workers_per_node is {workers_per_node}, expected 1 or more")
        if restarts < 0:
            raise ValueError(f"restarts is {restarts}, expected 0 or more")
        requested_gpus(gpus_per_node)
        self._nodes = nodes
        self._keep = keep
        options = WorkerOptions(engine, threads, memory, worker_options).arguments()
        self._arguments: dict[str, Any] = dict(
            partition=partition,
            account=account,
            qos=qos,
            gpus_per_node=gpus_per_node,
            cpus_per_task=cpus_per_task,
            time=time,
            constraint=constraint,
            workers_per_node=workers_per_node,
            server_options=list(server_options),
            worker_options=options,
            sbatch_options=list(sbatch_options),
            drain_seconds=drain_seconds,
            restarts=restarts,
        )
        self._request = JobRequest(name=self.name, has_lease=not keep, **self._arguments)
        self._guard: subprocess.Popen[bytes] | None = None
        self._states: dict[int, JobState] = {}
        self._next_look = 0.0

    @classmethod
    def attach(cls, folder: str | os.PathLike[str]) -> Slurm:
        """Return a cluster that another program has started, by its folder.

        `close` ends it; the end of this program does not.

        Raises:
            ClusterError: the folder has no cluster.
        """
        path = Path(folder).expanduser().absolute()
        try:
            record = read_record(path)
        except (OSError, ValueError) as error:
            raise ClusterError(f"there is no SLURM cluster in {path}{said(str(error))}") from None
        cluster = cls(
            record.jobs[0].nodes if record.jobs else 1,
            name=record.name,
            folder=path,
            keep=not record.has_lease,
            **record.arguments,
        )
        cluster._folder = ClusterFolder(path)
        cluster._folder.is_temporary = record.is_temporary
        cluster._size = record.size
        return cluster

    def detach(self) -> None:
        """Leave the cluster running; one that is not kept ends with the program that began it."""
        if self._folder is not None:
            self._folder.release()
        self._folder = None

    def script(self) -> str:
        """Return the script that `start` submits with `sbatch`."""
        folder = str(self._folder.path) if self._folder else str(self._given_folder or "FOLDER")
        return self._request.script(0, self._nodes, folder)

    def _open_folder(self) -> ClusterFolder:
        if self._given_folder is not None:
            folder = super()._open_folder()
            try:
                is_taken = not read_record(folder.path).is_ended
            except (OSError, ValueError):
                is_taken = False
            if is_taken:
                raise ClusterError(
                    f"the folder {folder.path} has a cluster: end it with "
                    "gt.cluster.Slurm.attach(...).close(), or name another folder"
                )
            return folder
        home = Path.home() / ".gt" / "clusters"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = ClusterFolder(tempfile.mkdtemp(prefix="slurm-", dir=home))
        folder.is_temporary = True
        return folder

    def _launch(self) -> None:
        folder, self._size = self.folder, self._nodes
        record = ClusterRecord(
            name=self.name,
            arguments=self._arguments,
            is_temporary=folder.is_temporary,
            has_lease=not self._keep,
            serve=self._nodes,
            size=self._nodes,
        )
        record.write(folder.path)
        if not self._keep:
            command = [sys.executable, "-m", "gt.cluster.slurm.guard", str(folder.path)]
            if folder.is_temporary:
                command.append("--remove")
            self._guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        with changed_record(folder.path) as record:
            self._submit(record, self._nodes)

    def _submit(self, record: ClusterRecord, nodes: int) -> None:
        if record.is_ended:
            raise ClusterError(f"the slurm cluster '{self.name}' has ended")
        job = record.add(nodes)
        # A job may begin before it is known to be submitted, and reads the record then.
        record.write(self.folder.path)
        script = self._request.script(job.number, job.nodes, str(self.folder.path))
        try:
            job.job = submit_script(script)
        except SlurmRefusal as refusal:
            record.jobs.remove(job)
            words = str(refusal)
            raise ClusterError(why_refused(self._request, job.nodes, words)) from None

    def _resize(self, size: int) -> None:
        try:
            states = self._look(0.0)
        except SlurmRefusal as refusal:
            raise ClusterError(
                f"the slurm cluster '{self.name}' cannot be scaled to {size} nodes"
                f"{said(str(refusal))}"
            ) from None
        with changed_record(self.folder.path) as record:
            first, *others = record.jobs
            alive = [job for job in others if not self._has_ended(job, states)]
            kept = max(0, size - first.nodes)
            released = [job.job for job in alive[kept:] if job.job is not None]
            record.jobs = [first, *alive[:kept]]
            record.released += released
            record.size, record.serve = size, min(size, first.nodes)
            # A job that has no nodes yet has nothing to hand over.
            cancel(released, "--state=PENDING")
            for _ in range(kept - len(alive)):
                self._submit(record, 1)

    def _look(self, every: float = _EVERY) -> dict[int, JobState]:
        """Return the states of the jobs by their IDs; SLURM is asked at intervals."""
        if time.monotonic() >= self._next_look or every == 0:
            self._next_look = time.monotonic() + every
            # SLURM forgets jobs some minutes after their end.
            self._states.update(job_states(self.name))
        return self._states

    def _has_ended(self, job: JobRecord, states: dict[int, JobState]) -> bool:
        return job.job in states and states[job.job].has_ended

    def _failure(self) -> str | None:
        try:
            states = self._look()
        except SlurmRefusal as refusal:
            return f"SLURM does not answer{said(str(refusal))}"
        record = read_record(self.folder.path)
        state = states.get(record.jobs[0].job or -1) if record.jobs else None
        if state is None:
            return None
        if state.is_hopeless:
            return why_refused(self._request, record.jobs[0].nodes, f"{state}")
        if not state.has_ended:
            return None
        words = self.logs().get("slurm-0") or (
            f"it has written nothing: do its nodes share the folder {self.folder.path}?"
        )
        return f"{state}{said(words)}"

    def _notes(self) -> list[str]:
        try:
            states = self._look(0.0)
        except SlurmRefusal as refusal:
            return str(refusal).splitlines()
        notes = []
        for job in read_record(self.folder.path).jobs:
            state = states.get(job.job) if job.job is not None else None
            notes.append(
                f"{state or f'job {job.job}'}, {job.nodes} nodes"
                f"{' and the server' if job.has_server else ''}"
            )
        log = self.logs(5)
        for name in sorted(log):
            if name.startswith("slurm-"):
                notes += [line for line in log[name].splitlines() if "error" in line]
        return notes

    def _expected_workers(self) -> int:
        return self._size * self._request.workers_of_a_node()

    def _shut_down(self) -> None:
        try:
            end_jobs(self.folder.path)
        except FileNotFoundError:
            pass  # It was not begun.
        except SlurmRefusal as refusal:
            # The guard ends the jobs with this program, unless `close` succeeds before.
            raise ClusterError(
                f"SLURM did not end the cluster '{self.name}'{said(str(refusal))}"
            ) from None
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.communicate(b"done\n", timeout=_GUARD_LIMIT)
        self._states = {}
