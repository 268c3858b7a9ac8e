"""The scripts that are submitted to SLURM."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gt.cluster.slurm.commands import requested_gpus

#: How long the workers of the first job wait for the server, and those of others, which may begin
#: while the server's job waits for its next allocation, in seconds.
_SERVER_WAIT, _LONG_SERVER_WAIT = 60, 3600

#: The time that is left of a job when its workers should have handed over everything, in seconds.
_MARGIN = 5.0

#: How long a session waits for its client, and a program for a server, if a job is run again, in
#: seconds: a day, as the next allocation may be far.
_GRACE = 86400


@dataclass(frozen=True)
class JobRequest:
    """What the jobs of a cluster ask SLURM for. See :class:`gt.cluster.Slurm`."""

    name: str
    partition: str | None
    account: str | None
    qos: str | None
    gpus_per_node: int | str | None
    cpus_per_task: int | None
    time: str | int | None
    constraint: str | None
    workers_per_node: int | None
    server_options: Sequence[str]
    worker_options: Sequence[str]
    sbatch_options: Sequence[str]
    drain_seconds: float
    restarts: int
    has_lease: bool

    def script(self, number: int, nodes: int, folder: str) -> str:
        """Return the script of a job: the first has the server, others have workers alone."""
        named = {
            "job-name": self.name,
            "nodes": nodes,
            "ntasks-per-node": 1,
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "gpus-per-node": self.gpus_per_node,
            "cpus-per-task": self.cpus_per_task,
            "time": self.time,
            "constraint": self.constraint,
            # A node that fails ends its own workers alone.
            "no-kill": "",
            "signal": f"B:TERM@{max(1, round(self.drain_seconds))}",
            "output": f"{folder}/logs/slurm-{number}.log",
            "open-mode": "append",
            "requeue" if self.restarts else "no-requeue": "",
        }
        options = [
            f"--{name}" if value == "" else f"--{name}={value}"
            for name, value in named.items()
            if value is not None
        ]
        lines = [f"#SBATCH {shlex.quote(option)}" for option in [*options, *self.sbatch_options]]
        command = shlex.join(self.command(number, nodes, folder))
        return "\n".join(["#!/bin/bash", *lines, f"exec {command}", ""])

    def workers_of_a_node(self) -> int:
        """Return how many workers a node has, as far as the request shows it."""
        return self.workers_per_node or requested_gpus(self.gpus_per_node) or 1

    def command(self, number: int, nodes: int, folder: str) -> list[str]:
        """Return the program of a job."""
        expected = str(nodes * self.workers_of_a_node())
        options = ["--number", str(number), "--nodes", str(nodes), "--expected", expected]
        if self.has_lease:
            options += ["--lease"]
        if self.restarts:
            options += ["--restarts", str(self.restarts)]
        if self.workers_per_node:
            options += ["--workers", str(self.workers_per_node)]
        server = list(self.server_options)
        if self.restarts:
            server = ["--state", f"{folder}/state/server", "--grace", str(_GRACE), *server]
        options += [f"--server-option={option}" for option in server if number == 0]
        drain = max(self.drain_seconds - _MARGIN, self.drain_seconds / 2)
        wait = _SERVER_WAIT if number == 0 else _LONG_SERVER_WAIT
        node = ["--wait", str(wait), "--drain-timeout", f"{drain:g}", *self.worker_options]
        options += [f"--node-option={option}" for option in node]
        return [sys.executable, "-m", "gt.cluster.slurm.job", folder, *options]
