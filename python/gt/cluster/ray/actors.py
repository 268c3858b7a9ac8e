"""The actors of a server and of a worker."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

from gt.cluster.devices import memory_part
from gt.cluster.folder import write_text
from gt.cluster.process import ChildProcess
from gt.cluster.programs import server_command, worker_command
from gt.cluster.ray.awaited import Awaited
from gt.cluster.ray.child import environment
from gt.cluster.ray.program_actor import EVERY, NEWS, Membership, ProgramActor

#: How often a worker asks whether its node is being drained, in seconds.
_NODE_EVERY = 3.0

#: How long a worker waits for the server, in seconds.
_SERVER_WAIT = 60.0


class ServerActor(ProgramActor):
    """The actor of the server."""

    def __init__(self, membership: Membership, workers: int):
        """Start a server.

        Args:
            membership: the cluster.
            workers: how many workers are expected.
        """
        self._workers = workers
        self._address = Awaited()
        super().__init__(membership, "server")

    async def address(self, known: str | None) -> str | None:
        """Return where others reach the server, as soon as that differs from what is known."""
        return await self._address.changed(known, NEWS)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        ray: Any = importlib.import_module("ray")
        shared = shared_folder(self._membership)
        home = self._folder.path if shared is None else shared
        self._published = self._folder.path / "address"
        self._published.unlink(missing_ok=True)
        command = server_command(
            host=ray.util.get_node_ip_address(),
            publish=str(self._published),
            workers=self._workers,
            options=["--state", str(home / "state"), *self._membership.options],
        )
        return command, environment([])

    def _serves(self, child: ChildProcess) -> bool:
        try:
            text = self._published.read_text().strip()
        except FileNotFoundError:
            return False
        if text and text != self._address.text:
            if (shared := shared_folder(self._membership)) is not None:
                # Clients that connect again find the file at all times.
                write_text(shared / "address", f"{text}\n")
            self._address.set(text)
        return bool(text)


class WorkerActor(ProgramActor):
    """The actor of a worker."""

    def __init__(self, membership: Membership, number: int, resources: dict[str, float]):
        """Start a worker.

        Args:
            membership: the cluster.
            number: the worker's number.
            resources: what the worker has of Ray.
        """
        self._number, self._resources = number, resources
        self._has_address, self._is_moving = threading.Event(), threading.Event()
        super().__init__(membership, f"worker-{number}")
        self._file = self._folder.path / f"{self._name}.address"
        for watch in (self._follow_server, self._follow_node):
            threading.Thread(target=watch, daemon=True).start()

    def _command(self) -> tuple[list[str], dict[str, str]] | None:
        while self._is_moving.is_set() or not self._has_address.wait(EVERY):
            if self._is_ended.is_set():
                return None
            if self._is_leaving.is_set():
                self._retire()
                return None
            self._is_ended.wait(EVERY)
        ray: Any = importlib.import_module("ray")
        gpus = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
        options = list(self._membership.options)
        given = {option.split("=")[0] for option in options}
        if "--threads" not in given:
            options += ["--threads", str(max(1, int(self._resources.get("CPU", 0))))]
        if "--memory" not in given and not gpus:
            options += ["--memory", str(memory_part(self._workers_of_node(ray)))]
        command = worker_command(
            address=f"file://{self._file}",
            name=str(self._number),
            wait=_SERVER_WAIT,
            options=options,
        )
        return command, environment(gpus)

    def _workers_of_node(self, ray: Any) -> int:
        """Return how many such workers the CPUs of this node are enough for."""
        here = ray.get_runtime_context().get_node_id()
        (total,) = (node["Resources"] for node in ray.nodes() if node["NodeID"] == here)
        share = self._resources.get("CPU", 0) or 1
        return max(1, int(total.get("CPU", 1) / share))

    def _serves(self, child: ChildProcess) -> bool:
        return " serves " in child.output()

    def _is_done(self, status: int) -> bool:
        # It was drained, if it has ended in good order: for good, or to move to another node.
        return super()._is_done(status) or (status == 0 and not self._is_moving.is_set())

    def _follow_server(self) -> None:
        """Write where the server is into a file, also after each of its restarts."""
        ray: Any = importlib.import_module("ray")
        named = self._membership.server, self._membership.namespace
        known: str | None = None
        server: Any = None
        while not self._is_ended.is_set():
            try:
                # A handle among the arguments would not survive the program that has made it.
                server = server or ray.get_actor(named[0], namespace=named[1])
                found = ray.get(server.address.remote(known), timeout=2 * NEWS)
            except (ray.exceptions.RayError, ValueError):
                self._is_ended.wait(0.5)  # It is being started.
                continue
            if found is not None and found != known:
                known = found
                write_text(self._file, f"{found}\n")
                self._has_address.set()

    def _follow_node(self) -> None:
        """Hand over what the worker has when Ray drains this node, before a preemption."""
        ray: Any = importlib.import_module("ray")
        here = ray.get_runtime_context().get_node_id()
        while not self._is_ended.wait(_NODE_EVERY):
            try:
                client = ray._private.worker.global_worker.gcs_client
                draining = client.get_draining_nodes(timeout=_NODE_EVERY)
            except Exception:
                continue  # Ray's own state is not available now.
            if here in draining:
                self._is_moving.set()
                if self._child is not None:
                    self._child.drain()
                return


def shared_folder(membership: Membership) -> Path | None:
    """Return the owner's folder if this node has it, too: it has the same key."""
    if membership.shared is None:
        return None
    folder = Path(membership.shared)
    try:
        has_it = (folder / "key").read_text().strip() == membership.key
    except OSError:
        return None
    return folder if has_it else None
