"""The actors: each runs a server or a worker as a child process, which ends with it.

A child that ends after it has served ends its actor, and Ray restarts that. A child that ends in
its start is started again here; after some tries the actor waits with the child's last words.
"""

from __future__ import annotations

import abc
import asyncio
import importlib
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gt.cluster.devices import memory_part
from gt.cluster.errors import said
from gt.cluster.process import ChildProcess
from gt.cluster.programs import server_command, worker_command
from gt.cluster.ray.awaited import Awaited
from gt.cluster.ray.child import environment, ending_with_parent
from gt.cluster.ray.node_folder import NodeFolder, write_text

if TYPE_CHECKING:
    from typing_extensions import Self

#: How often a child is looked at, in seconds.
_EVERY = 0.1

#: How often a child may fail in its start.
_TRIES = 3

#: How often a worker asks whether its node is being drained, in seconds.
_NODE_EVERY = 3.0

#: How long a call waits for news before it returns without, in seconds.
_NEWS = 60.0

#: How long a child may take to end, in seconds.
_END_WITHIN = 4.0

#: How long a worker waits for the server, in seconds.
_SERVER_WAIT = 60.0

#: The exit status of a program with wrong options.
_USAGE = 2


@dataclass(frozen=True)
class Membership:
    """What each actor of a cluster is given.

    Args:
        cluster: the cluster's unique name on Ray.
        key: the cluster's key.
        server: the name of the server's actor.
        namespace: that of the actors; None for that of their job.
        options: further options of the program.
        shared: the folder of the owner, which the node may have, too; None for a temporary one.
    """

    cluster: str
    key: str
    server: str
    namespace: str | None
    options: tuple[str, ...] = ()
    shared: str | None = None

    def __repr__(self) -> str:
        """Return a text without the key."""
        return f"Membership({self.cluster!r})"


class ProgramActor(abc.ABC):
    """An actor with a child process."""

    _is_leaving: threading.Event
    _child: ChildProcess | None

    def __new__(cls, *_: object) -> Self:
        """Make an actor that hands SIGTERM to its child."""
        # Ray makes the object in the main thread, the only one that may set handlers, and
        # initializes it in another.
        self = super().__new__(cls)
        self._is_leaving = threading.Event()
        self._child = None
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: self._leave())
        return self

    def __init__(self, membership: Membership, name: str):
        """Begin to run the child, in a thread."""
        self._membership, self._name = membership, name
        self._folder = NodeFolder(membership.cluster)
        self._failure = Awaited()
        self._is_ended = threading.Event()
        # The kernel ends the child with the thread that has started it.
        self._thread = threading.Thread(target=self._run, name=f"gt-{name}", daemon=True)
        self._thread.start()

    @abc.abstractmethod
    def _command(self) -> tuple[list[str], dict[str, str]] | None:
        """Return the child's command and environment, once it can start; None if it ends first."""

    @abc.abstractmethod
    def _serves(self, child: ChildProcess) -> bool:
        """Return whether the child has started."""

    def _is_done(self, status: int) -> bool:
        """Return whether a child that has served and ended with a status is not to come back."""
        return self._is_leaving.is_set()

    async def failure(self) -> str | None:
        """Return why the child cannot start, as soon as that is so; None after some time."""
        return await self._failure.changed(None, _NEWS)

    async def drain(self) -> None:
        """Have the child hand over what it has; then the actor ends."""
        self._leave()

    async def logs(self, lines: int | None) -> str:
        """Return the last lines of the child's log, or all."""
        try:
            text = self._folder.log(self._name).read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "".join(f"{line}\n" for line in (text[-lines:] if lines else text))

    async def processes(self) -> list[int]:
        """Return the process IDs of the actor and of its child, if that runs."""
        child = self._child
        runs = child is not None and child.exit_status() is None
        return [os.getpid(), *([child.pid] if child is not None and runs else [])]

    async def end(self) -> None:
        """End the child now, and wait until it has."""
        self._is_ended.set()
        if self._child is not None:
            self._child.end()
        await asyncio.to_thread(self._thread.join, _END_WITHIN + 1)

    async def clear(self) -> None:
        """Remove the cluster's files on this node, when all its actors here have ended."""
        self._folder.remove()

    def _leave(self) -> None:
        self._is_leaving.set()
        if self._child is not None:
            self._child.drain()

    def _run(self) -> None:
        pause = self._folder.note_start(self._name)
        for attempt in range(1, _TRIES + 1):
            if self._is_ended.wait(pause):
                return
            words = self._run_child()
            if words is None:
                return
            is_usage = words.startswith(f"exit status {_USAGE}\n")
            if attempt == _TRIES or is_usage:
                times = f"{attempt} times" if attempt > 1 else "in its start"
                self._failure.set(f"its {self._name} failed {times}, {words}")
                return
            pause = 0.5 * attempt

    def _run_child(self) -> str | None:
        """Run the child until it ends; return its words if it has failed in its start."""
        made = self._command()
        if made is None:
            return None
        command, variables = made
        self._child = child = ChildProcess(
            ending_with_parent(command),
            key=self._membership.key,
            log=self._folder.log(self._name),
            environment=variables,
        )
        if self._is_leaving.is_set():
            child.drain()
        has_served = False
        while (status := child.exit_status()) is None:
            has_served = has_served or self._serves(child)
            if self._is_ended.wait(_EVERY):
                child.end()
                child.wait(_END_WITHIN)
                return None
        if self._is_ended.is_set():
            return None
        if self._is_done(status):
            self._retire()
        elif has_served or self._serves(child):
            os._exit(1)  # Ray restarts the actor, here or on another node.
        else:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            return f"{how}{said(child.output())}"
        return None

    def _retire(self) -> None:
        """End this actor for good."""
        ray: Any = importlib.import_module("ray")
        self._folder.forget(self._name)
        ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


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
        return await self._address.changed(known, _NEWS)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        ray: Any = importlib.import_module("ray")
        shared = shared_folder(self._membership)
        home = self._folder.path if shared is None else shared
        self._published = home / "address"
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
        while self._is_moving.is_set() or not self._has_address.wait(_EVERY):
            if self._is_ended.is_set():
                return None
            if self._is_leaving.is_set():
                self._retire()
                return None
            self._is_ended.wait(_EVERY)
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
                found = ray.get(server.address.remote(known), timeout=2 * _NEWS)
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
        client = ray._private.worker.global_worker.gcs_client
        while not self._is_ended.wait(_NODE_EVERY):
            try:
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
