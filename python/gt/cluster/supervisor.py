"""The workers of one machine: started, restarted when they fail, drained and ended together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gt.cluster.errors import said
from gt.cluster.process import ChildProcess

#: How often the workers are looked at, in seconds.
_EVERY = 0.1

#: The first and the longest pause before a failed worker is started again, in seconds.
_PAUSE = (0.5, 30.0)

#: A worker that has run for so long counts as started, in seconds: its next failure is a first one.
_STARTED_AFTER = 30.0

#: How often a worker may fail before it serves, until it is given up.
_TRIES = 3

#: The part of its first line by which a worker says that the server has accepted it.
_SERVES = " serves "

#: How long the workers may take to end at once, in seconds.
_END_WITHIN = 4.5


@dataclass(frozen=True)
class WorkerProgram:
    """How a worker is run: its command, and what its environment has besides this process's."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Place:
    """The place of one worker: its process, and those before that failed."""

    child: ChildProcess | None = None
    since: float = 0.0
    #: How many failed in a row, and how many of the last ones without having served.
    failures: int = 0
    failed_starts: int = 0
    next_start: float = 0.0
    has_stopped: bool = False


class Supervisor:
    """Keeps a number of workers running, as children of this process.

    A worker that fails is started again, after a pause that doubles; one that fails several times
    in its start is given up. One that has served is not: a fault of its device, or an operation
    that ends it until the server abandons that, costs a restart each. Nor is one that ends in good
    order started again: it was drained.
    """

    def __init__(
        self,
        program: Callable[[int], WorkerProgram],
        *,
        key: str,
        logs: Path,
        prefix: str = "worker-",
    ):
        """Supervise no worker yet.

        Args:
            program: how the worker of a number is run.
            key: the key that workers read from their standard input.
            logs: the folder of their logs.
            prefix: the beginning of the names of the logs; the number follows.
        """
        self._program, self._key = program, key
        self._logs, self._prefix = logs, prefix
        self._lock = threading.Lock()
        self._places: dict[int, _Place] = {}
        self._leaving: list[ChildProcess] = []
        #: Why workers were given up, by their numbers.
        self._failures: dict[int, str] = {}
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gt-supervisor", daemon=True)
        self._thread.start()

    def scale(self, size: int) -> None:
        """Start workers, or drain those with the highest numbers, so that there are as many."""
        with self._lock:
            if self._is_ended.is_set():
                return
            for number in range(size):
                if number not in self._places or self._places[number].has_stopped:
                    self._places[number] = _Place()
                    self._failures.pop(number, None)
                    self._start(number)
            # Why those failed that are not wanted any more is of no interest.
            self._failures = {of: words for of, words in self._failures.items() if of < size}
            self._drain_from(size)

    def drain(self) -> None:
        """Have all workers hand over what they have, and end."""
        with self._lock:
            self._drain_from(0)

    def _drain_from(self, size: int) -> None:
        for number in [number for number in self._places if number >= size]:
            child = self._places.pop(number).child
            if child is not None:
                child.drain()
                self._leaving.append(child)

    @property
    def failure(self) -> str | None:
        """Return why the workers were given up that were, with their own words, or None."""
        with self._lock:
            return "\n".join(self._failures.values()) or None

    def running(self) -> int:
        """Return how many workers run, also those that are leaving."""
        with self._lock:
            children = [place.child for place in self._places.values()] + self._leaving
            return sum(child is not None and child.exit_status() is None for child in children)

    def has_stopped(self) -> bool:
        """Return whether no worker runs or will be started: all were drained, or given up."""
        with self._lock:
            return all(place.has_stopped for place in self._places.values())

    def end(self) -> None:
        """End all workers now, and wait until they have. May be called twice."""
        with self._lock:
            self._is_ended.set()
        self._thread.join()
        with self._lock:
            children = [place.child for place in self._places.values()] + self._leaving
            running = [child for child in children if child is not None]
            self._places.clear()
            self._leaving.clear()
        for child in running:
            child.end()
        until = time.monotonic() + _END_WITHIN
        for child in running:
            child.wait(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._is_ended.wait(_EVERY):
            with self._lock:
                self._leaving = [of for of in self._leaving if of.exit_status() is None]
                for number, place in self._places.items():
                    self._look_at(number, place)

    def _look_at(self, number: int, place: _Place) -> None:
        now = time.monotonic()
        if place.has_stopped:
            return
        if place.child is None:
            if now >= place.next_start:
                self._start(number)
            return
        status = place.child.exit_status()
        if status is None:
            return
        if status == 0:
            place.has_stopped = True
            return
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        output = place.child.output()
        place.child.end()
        place.child = None
        is_long = now - place.since >= _STARTED_AFTER
        if is_long:
            place.failures = 0
        if is_long or _SERVES in output:
            place.failed_starts = 0
        else:
            place.failed_starts += 1
        self._note_failure(number, place, f"({how}){said(output)}")

    def _note_failure(self, number: int, place: _Place, words: str) -> None:
        place.failures += 1
        if place.failed_starts >= _TRIES:
            place.has_stopped = True
            self._failures[number] = f"worker {number} failed {place.failures} times {words}"
        else:
            # Beyond this, the pause is the longest anyhow, and powers have no bound.
            doublings = min(place.failures - 1, 16)
            pause = min(_PAUSE[0] * 2**doublings, _PAUSE[1])
            place.next_start = time.monotonic() + pause

    def _start(self, number: int) -> None:
        program, place = self._program(number), self._places[number]
        log = self._logs / f"{self._prefix}{number}.log"
        place.since = time.monotonic()
        try:
            place.child = ChildProcess(
                program.command, key=self._key, log=log, environment=program.environment
            )
        except OSError as error:
            # Its log cannot be written, or the system has no room for a process.
            place.failed_starts += 1
            self._note_failure(number, place, f"({error})")
