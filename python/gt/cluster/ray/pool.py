"""The actors of a cluster, as its owner sees them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gt.cluster.errors import said
from gt.cluster.ray.actors import ServerActor, WorkerActor
from gt.cluster.ray.groups import Group, Groups
from gt.cluster.ray.plan import Plan
from gt.cluster.ray.program_actor import Membership

#: How long the thread waits for news before it looks again, in seconds.
_EVERY = 0.5

#: How long the children may take to end, in seconds.
_END_WITHIN = 4.5

#: How long the nodes may take to remove files or to send logs, in seconds.
_ANSWER_WITHIN = 2.0


def _is_of_interest(record: logging.LogRecord) -> bool:
    # The placement groups are kept as long as the actors in them.
    return "restartable detached actor" not in record.getMessage()


@dataclass(eq=False)
class _Member:
    """An actor: its handle, its place, and the call that returns why it fails."""

    actor: Any
    group: Group | None
    number: int = -1
    news: Any = None
    failure: str | None = None
    is_leaving: bool = False
    has_left: bool = False


@dataclass
class _Members:
    """All actors."""

    server: _Member | None = None
    workers: dict[int, _Member] = field(default_factory=dict)
    leaving: list[_Member] = field(default_factory=list)

    def staying(self) -> list[_Member]:
        """Return those that are to serve."""
        return [*([self.server] if self.server else []), *self.workers.values()]


class Pool:
    """The server and the workers of a cluster on Ray.

    A thread follows the server's address, hears of failures, and returns to Ray what drained
    workers had.
    """

    def __init__(
        self, ray: Any, plan: Plan, membership: Membership, publish: Callable[[str], None]
    ):
        """Begin without actors.

        Args:
            ray: Ray's package.
            plan: what is asked of it.
            membership: what the actors are given.
            publish: called with the server's address, whenever that has changed.
        """
        self._ray, self._plan, self._membership = ray, plan, membership
        self._publish = publish
        self.groups = Groups(ray, plan)
        if plan.is_kept:
            logging.getLogger("ray.actor").addFilter(_is_of_interest)
        self._lock = threading.RLock()
        self._members = _Members()
        self._is_ended = threading.Event()
        self._address: Any = None
        self._known: str | None = None
        self._thread = threading.Thread(target=self._run, name="gt-ray", daemon=True)

    def start(self, size: int) -> None:
        """Start the server and the first workers in the first placement group."""
        with self._lock:
            options = {**self._plan.server_actor(), **self.groups.server_place()}
            given = replace(self._membership, options=tuple(self._plan.server_options))
            server = self._ray.remote(ServerActor).options(**options).remote(given, size)
            self._members.server = _Member(server, self.groups.first)
            self.scale(size)
        self._thread.start()

    def find(self) -> int:
        """Find the actors and groups that another process has left; return how many workers.

        Raises:
            ValueError: there is no server.
        """
        with self._lock:
            self.groups.find()
            namespace = self._plan.namespace
            prefix = self._plan.actor_name("")
            for found in self._ray.util.list_named_actors(all_namespaces=True):
                part = found["name"].removeprefix(prefix)
                if found["namespace"] == namespace and part.isdecimal() and found["name"] != part:
                    actor = self._ray.get_actor(found["name"], namespace=namespace)
                    _, group = self.groups.use(int(part))
                    self._members.workers[int(part)] = _Member(actor, group, int(part))
            server = self._ray.get_actor(self._plan.actor_name("server"), namespace=namespace)
            self._members.server = _Member(server, self.groups.first)
        self._thread.start()
        return len(self._members.workers)

    def scale(self, size: int) -> None:
        """Add or drain workers, so that there are as many."""
        with self._lock:
            workers = self._members.workers
            for number in [number for number, member in workers.items() if member.has_left]:
                self.groups.release(workers[number].group, number)
                del workers[number]
            for number in sorted(workers)[size:]:
                self._drain(workers.pop(number))
            taken = {*workers, *(member.number for member in self._members.leaving)}
            free = (number for number in range(len(taken) + size) if number not in taken)
            added = [next(free) for _ in range(size - len(workers))]
            self.groups.add(added)
            for number in added:
                workers[number] = self._worker(number)

    def failure(self) -> str | None:
        """Return why an actor cannot start, or None."""
        with self._lock:
            found = (member.failure for member in self._members.staying())
            return next((words for words in found if words is not None), None)

    def logs(self, lines: int | None) -> dict[str, str]:
        """Return the logs of the actors that answer."""
        with self._lock:
            named = {f"worker-{number}": of for number, of in self._members.workers.items()}
            if self._members.server is not None:
                named = {"server": self._members.server, **named}
        calls = {name: member.actor.logs.remote(lines) for name, member in named.items()}
        self._wait(list(calls.values()), _ANSWER_WITHIN)
        found = {}
        for name, call in calls.items():
            try:
                found[name] = self._ray.get(call, timeout=0.1)
            except self._ray.exceptions.RayError:
                continue  # It is being started.
        return found

    def end(self) -> None:
        """End all children, actors and placement groups."""
        self._is_ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            members = [*self._members.staying(), *self._members.leaving]
            self._members = _Members()
        if not self._ray.is_initialized():
            return  # All has ended with the program's connection.
        placed = [of for of in members if of.group is None or of.group.is_ready()]
        self._wait([member.actor.end.remote() for member in placed], _END_WITHIN)
        self._wait([member.actor.clear.remote() for member in placed], _ANSWER_WITHIN)
        for member in members:
            self._ray.kill(member.actor, no_restart=True)
        self.groups.remove_all()

    def release(self) -> None:
        """Leave all as it is, and end the thread."""
        self._is_ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _worker(self, number: int) -> _Member:
        place, group = self.groups.use(number)
        given = replace(self._membership, options=tuple(self._plan.worker_options))
        make = self._ray.remote(WorkerActor).options(**self._plan.worker_actor(number), **place)
        actor = make.remote(given, number, self._plan.worker)
        return _Member(actor, group, number)

    def _drain(self, member: _Member) -> None:
        member.is_leaving = True
        if member.group is not None and not member.group.is_ready():
            self._ray.kill(member.actor, no_restart=True)
        else:
            member.actor.drain.remote()
        self._members.leaving.append(member)

    def _wait(self, calls: Sequence[Any], limit: float) -> None:
        if calls:
            self._ray.wait(list(calls), num_returns=len(calls), timeout=limit)

    def _run(self) -> None:
        # Calls without a connection would start another Ray.
        while self._ray.is_initialized() and not self._is_ended.is_set():
            try:
                with self._lock:
                    calls = self._calls()
                ready, _ = self._ray.wait(list(calls), num_returns=1, timeout=_EVERY)
                for call in ready:
                    self._hear(call, calls[call])
            except Exception:
                if self._ray.is_initialized():
                    raise
                return  # The program has disconnected from Ray.
            # An actor that is being restarted refuses calls at once.
            if ready and self._is_ended.wait(0.05):
                return

    def _calls(self) -> dict[Any, _Member | None]:
        """Return a call to each actor that returns when there is news; None has the address."""
        assert self._members.server is not None
        if self._address is None:
            self._address = self._members.server.actor.address.remote(self._known)
        calls: dict[Any, _Member | None] = {self._address: None}
        for member in [*self._members.staying(), *self._members.leaving]:
            if member.is_leaving or (member.failure is None and not member.has_left):
                if member.news is None:
                    member.news = member.actor.failure.remote()
                calls[member.news] = member
        return calls

    def _hear(self, call: Any, member: _Member | None) -> None:
        errors = self._ray.exceptions
        found, words, is_dead = None, "", False
        try:
            found = self._ray.get(call, timeout=1)
        except (errors.ActorDiedError, errors.ActorPlacementGroupRemoved) as error:
            words, is_dead = str(error), True
        except (errors.RuntimeEnvSetupError, errors.ActorUnschedulableError) as error:
            found = f"Ray cannot run an actor of it{said(str(error))}"
        except errors.RayError:
            pass  # It is being restarted.
        with self._lock:
            if member is None:
                self._address = None
                if found is not None and found != self._known:
                    self._known = found
                    self._publish(found)
                return
            member.news = None
            if member.is_leaving and is_dead:
                self._members.leaving.remove(member)
                self.groups.release(member.group, member.number)
            elif is_dead and "ray.kill" in words:
                member.has_left = True
            elif is_dead:
                member.failure = f"Ray cannot run an actor of it{said(words)}"
            else:
                member.failure = found
