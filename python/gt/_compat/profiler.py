"""Times of the named parts of a program, with the names and tables of PyTorch's profiler.

While a profile records, a part's time lasts until the workers have computed it, so
`record_function` waits for them. Single operations are not recorded: the instruction log of
`gt trace` has them, and `gt.debug.get_worker_stats()` the times of repeated sequences.
"""

from __future__ import annotations

import enum
import functools
import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from gt._gt import synchronize
from gt._public import show_callers

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What to record; parts of the program are recorded in any case."""

    CPU = 0
    XPU = 1
    CUDA = 3


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be asked for."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Return False: PyTorch's library for traces is not used."""
    return False


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Return a function of a step's number that says what a profile does in the step.

    Args:
        wait: the number of steps at the beginning of a cycle in which nothing is recorded.
        warmup: the number of steps after these whose records are discarded.
        active: the number of steps that are recorded.
        repeat: the number of cycles; 0 for no limit.
        skip_first: the number of steps before the first cycle.
        skip_first_wait: 1 to leave out `wait` in the first cycle.

    >>> act = gt.profiler.schedule(wait=1, warmup=1, active=1)
    >>> [act(step).name for step in range(3)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE']
    """
    for name, value, least in (
        *(("wait", wait, 0), ("warmup", warmup, 0), ("active", active, 1)),
        *(("repeat", repeat, 0), ("skip_first", skip_first, 0)),
    ):
        if value < least:
            raise ValueError(f"schedule: {name} is {value}, expected {least} or more")

    def act(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, at = divmod(step, wait + warmup + active)
        if (repeat and cycle >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        last = at == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return act


class FunctionEvent:
    """One run of a named part, or the sum of several.

    Args:
        name: the name.
        start: when it began, in microseconds.
        cpu_time_total: how long it took in all, in microseconds.
        thread: the thread that ran it.
        count: the number of runs.
    """

    def __init__(self, name: str, start: float, cpu_time_total: float, thread: int, count: int = 1):
        self.name = self.key = name
        self.start, self.cpu_time_total = start, cpu_time_total
        self.thread, self.count = thread, count

    @property
    def cpu_time(self) -> float:
        """The average time of a run, in microseconds."""
        return self.cpu_time_total / self.count

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent name={self.name} count={self.count} "
            f"cpu_time_total={self.cpu_time_total:.3f}us>"
        )


class EventList(list[Any]):
    """A list of events that prints as a table."""

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        **options: Any,
    ) -> str:
        """Return the events as a table.

        Args:
            sort_by: an attribute such as "cpu_time_total", the largest first; others, such as
                times on GPUs, sort by "cpu_time_total".
            row_limit: the number of rows; -1 for all.
            max_name_column_width: the width of the names.
            **options: PyTorch's further options; they have no effect.
        """
        events = list(self)
        if sort_by is not None:
            name = sort_by if sort_by in ("count", "cpu_time") else "cpu_time_total"
            events.sort(key=lambda event: getattr(event, name), reverse=True)
        width = min(max([4, *(len(event.name) for event in self)]), max_name_column_width)
        rule = f"{'-' * width}  {'-' * 12}  {'-' * 12}  {'-' * 10}"
        lines = [
            rule,
            f"{'Name':>{width}}  {'Total':>12}  {'Average':>12}  {'# of Calls':>10}",
            rule,
        ]
        for event in events if row_limit < 0 else events[:row_limit]:
            total, average = f"{event.cpu_time_total:.1f}us", f"{event.cpu_time:.1f}us"
            name = event.name[:width]
            lines.append(f"{name:>{width}}  {total:>12}  {average:>12}  {event.count:>10}")
        return "\n".join([*lines, rule]) + "\n"

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """Return one event for each name, in order of the first runs."""
        sums: dict[str, FunctionEvent] = {}
        for event in self:
            known = sums.get(event.name)
            if known is None:
                times = (event.start, event.cpu_time_total)
                sums[event.name] = FunctionEvent(event.name, *times, event.thread, event.count)
            else:
                known.cpu_time_total += event.cpu_time_total
                known.count += event.count
        return EventList(sums.values())

    def total_average(self) -> FunctionEvent:
        """Return the sum of all events."""
        total = sum(event.cpu_time_total for event in self)
        count = sum(event.count for event in self)
        return FunctionEvent("Total", 0.0, total, 0, max(count, 1))

    def export_chrome_trace(self, path: str) -> None:
        """Write a file that chrome://tracing and Perfetto show."""
        events = [
            {
                "name": event.name,
                "ph": "X",
                "ts": event.start,
                "dur": event.cpu_time_total,
                "pid": os.getpid(),
                "tid": event.thread,
            }
            for event in self
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": events}, file)

    def __str__(self) -> str:
        return self.table()


#: The profiles that are recording, the innermost last.
_recording: list[profile] = []


class record_function:
    """A named part of a program: `with record_function("forward"):`, or a decorator.

    Without a profile that records, it does nothing.

    Args:
        name: the name.
        args: accepted as in PyTorch; it has no effect.
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._starts: list[float | None] = []

    def __enter__(self) -> record_function:
        if _recording:
            synchronize()
        self._starts.append(time.perf_counter() * 1e6 if _recording else None)
        return self

    def __exit__(self, *exception: object) -> None:
        start = self._starts.pop()
        if not _recording or start is None:
            return
        synchronize()
        event = FunctionEvent(
            self.name, start, time.perf_counter() * 1e6 - start, threading.get_ident()
        )
        for profiling in _recording:
            profiling._events.append(event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose calls are recorded as a part."""

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return recorded


class profile:
    """A `with` block in which the times of named parts are recorded.

    Args:
        activities: accepted as in PyTorch; it has no effect.
        schedule: what to do in each step, as `schedule` returns; by default all is recorded.
        on_trace_ready: called with the profile after the last step of a cycle, and at the end.
        record_shapes, profile_memory, with_stack, with_flops, with_modules, **options: accepted as
            in PyTorch; GT does not record them.

    >>> with gt.profiler.profile() as prof:
    ...     with gt.profiler.record_function("double"):
    ...         y = gt.ones(2) * 2
    >>> [(event.key, event.count) for event in prof.key_averages()]
    [('double', 1)]
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        **options: Any,
    ):
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self._steps = schedule is not None
        self._act = schedule or (lambda step: ProfilerAction.RECORD)
        self._events = EventList()
        self._step: record_function | None = None
        self.current_action = ProfilerAction.NONE

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step."""
        self._begin()

    def step(self) -> None:
        """End a step and begin the next."""
        self._end(self.current_action is ProfilerAction.RECORD_AND_SAVE)
        self.step_num += 1
        self._begin()

    def stop(self) -> None:
        """End the last step."""
        recorded = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._end(self.current_action in recorded)
        self.current_action = ProfilerAction.NONE

    def _begin(self) -> None:
        before, self.current_action = self.current_action, self._act(self.step_num)
        if self.current_action is ProfilerAction.NONE:
            return
        if before is not ProfilerAction.RECORD:
            self._events = EventList()
        _recording.append(self)
        if self._steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end(self, is_ready: bool) -> None:
        if self in _recording:
            if self._step is not None:
                self._step.__exit__()
                self._step = None
            _recording.remove(self)
        if is_ready and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def events(self) -> EventList:
        """Return the runs of named parts."""
        return self._events

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """Return one event for each name."""
        return self._events.key_averages()

    def export_chrome_trace(self, path: str) -> None:
        """Write a file that chrome://tracing and Perfetto show."""
        self._events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> NoReturn:
        """Raise NotImplementedError: calls of functions are not recorded."""
        raise NotImplementedError(
            "export_stacks: GT does not record calls of functions\n  hint: Python's cProfile does"
        )

    def add_metadata(self, key: str, value: str) -> None:
        """Do nothing: traces have no metadata."""

    add_metadata_json = add_metadata


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes traces to a folder.

    Args:
        dir_name: the folder.
        worker_name: the first part of the files' names; by default the host and process.
        use_gzip: whether to compress the files.
    """

    def write(profiling: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        who = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = os.path.join(dir_name, f"{who}.{time.time_ns()}.pt.trace.json")
        profiling.export_chrome_trace(path)
        if use_gzip:
            with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb") as compressed:
                compressed.write(plain.read())
            os.remove(path)

    return write


show_callers(globals())
