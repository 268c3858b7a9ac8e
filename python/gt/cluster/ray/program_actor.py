"""An actor that runs a program as a child process, which ends with it.

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
from typing import TYPE_CHECKING, Any

from gt.cluster.errors import said
from gt.cluster.process import ChildProcess
from gt.cluster.ray.awaited import Awaited
from gt.cluster.ray.child import ending_with_parent
from gt.cluster.ray.node_folder import NodeFolder

if TYPE_CHECKING:
    from typing_extensions import Self

#: How often a child is looked at, in seconds.
EVERY = 0.1

#: How often a child may fail in its start.
_TRIES = 3

#: How long a call waits for news before it returns without, in seconds.
NEWS = 60.0

#: How long a child may take to end, in seconds.
_END_WITHIN = 4.0

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
        return await self._failure.changed(None, NEWS)

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
            if self._is_ended.wait(EVERY):
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
