"""What a cluster asks of Ray."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gt.cluster.programs import server_command, worker_command

#: The strategies of Ray's placement groups.
STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")

#: How often Ray restarts an actor: as often as it fails.
RESTARTS = -1


@dataclass(frozen=True)
class Plan:
    """What is asked of Ray, and how the programs are run.

    Args:
        cluster: the cluster's unique name on Ray.
        address: that of Ray.
        namespace: the namespace of the actors; None for that of the connection.
        strategy: the strategy of the placement group.
        worker: the resources of each worker.
        is_kept: whether the actors outlive this program.
        memory: the bytes of the machine's memory that a worker without a GPU reserves, if any.
        has_gpu_if_any: whether each worker is to have a GPU if Ray has any.
        runtime_env: Ray's environment of the actors.
        is_environment_of_job: whether all of this program's connection has that environment.
        server_options: further options of `gt server`.
        worker_options: further options of `gt worker`.
    """

    cluster: str
    address: str | None
    namespace: str | None
    strategy: str
    worker: dict[str, float]
    is_kept: bool
    has_gpu_if_any: bool
    memory: int | None = None
    runtime_env: dict[str, Any] = field(default_factory=dict)
    is_environment_of_job: bool = False
    server_options: Sequence[str] = ()
    worker_options: Sequence[str] = ()

    def resolved(self, has_gpus: bool) -> Plan:
        """Return the plan for a Ray with or without GPUs."""
        worker = dict(self.worker)
        if self.has_gpu_if_any and has_gpus:
            worker["GPU"] = 1
        if self.memory is not None and "GPU" not in worker:
            worker["memory"] = self.memory
        return replace(self, worker=worker, has_gpu_if_any=False)

    def actor_environment(self) -> dict[str, Any] | None:
        """Return the environment to give to each task and actor, or None."""
        return None if self.is_environment_of_job else self.runtime_env or None

    def server_actor(self) -> dict[str, Any]:
        """Return the options of the server's actor, besides where it is placed."""
        return {**self._actor("server"), "num_cpus": 0}

    def worker_actor(self, number: int) -> dict[str, Any]:
        """Return the options of a worker's actor, besides where it is placed."""
        given = {
            "num_cpus": self.worker["CPU"],
            "num_gpus": self.worker.get("GPU", 0),
            "memory": self.worker.get("memory"),
        }
        return {**self._actor(str(number)), **{of: n for of, n in given.items() if n is not None}}

    def actor_name(self, part: str) -> str:
        """Return the name of an actor on Ray: that of "server", or of a worker's number."""
        return f"{self.cluster}-{part}"

    def group(self, name: str) -> dict[str, Any]:
        """Return the options of a placement group."""
        kept = {"lifetime": "detached"} if self.is_kept else {}
        return {"name": f"{self.cluster}:{name}", **kept}

    def asked(self, count: int) -> str:
        """Return what some workers ask for, in words."""
        each = " each" if count > 1 else ""
        return f"{count} worker{'s' if count != 1 else ''} with {told(self.worker)}{each}"

    def text(self, size: int) -> str:
        """Return all that is asked of Ray, and the commands that the actors run."""
        lines = [f"Ray at the address {self.address or 'of this program or machine'}"]
        if self.runtime_env:
            lines.append(f"runtime_env {json.dumps(self.runtime_env, sort_keys=True, default=str)}")
        if size:
            lines.append(f"placement group {_options(self.group('first'))}, {self.strategy}:")
            lines += [f"  bundle {number}: {told(self.worker)}" for number in range(size)]
        if self.has_gpu_if_any:
            lines.append("  and GPU 1 in each bundle, if Ray has any GPU")
        place = " in bundle 0" if size else ""
        lines.append(f"actor{place}: {_options(self.server_actor())}")
        server = server_command(
            host="NODE",
            publish="FOLDER/address",
            workers=size,
            options=["--state", "FOLDER/state", *self.server_options],
            python="python",
        )
        lines.append(_command(server))
        for number in range(size):
            lines.append(f"actor in bundle {number}: {_options(self.worker_actor(number))}")
            worker = worker_command(
                address=f"file://FOLDER/worker-{number}.address",
                name=str(number),
                wait=60,
                options=self.worker_options,
                python="python",
            )
            lines.append(_command(worker))
        return "\n".join(lines) + "\n"

    def _actor(self, part: str) -> dict[str, Any]:
        given = {
            "name": self.actor_name(part),
            "namespace": self.namespace,
            "lifetime": "detached" if self.is_kept else None,
            "runtime_env": self.actor_environment(),
        }
        return {
            **{of: value for of, value in given.items() if value is not None},
            "max_restarts": RESTARTS,
            "max_task_retries": 0,
        }


def told(resources: dict[str, float]) -> str:
    """Return resources of Ray in words."""
    return ", ".join(f"{name} {amount:.15g}" for name, amount in resources.items())


def _options(given: dict[str, Any]) -> str:
    shown = {of: value for of, value in given.items() if of != "runtime_env"}
    return ", ".join(f"{of} {value}" for of, value in shown.items())


def _command(command: Sequence[str]) -> str:
    return "  " + shlex.join([*command, "--key-file", "-", "--until-eof"])
