"""Times of statements, with the names of PyTorch's `Timer` and `Measurement`."""

from __future__ import annotations

import statistics
import timeit
from typing import Any

from gt._gt import synchronize
from gt._public import show_callers

__all__ = ["Measurement", "Timer"]


class Measurement:
    """The times of several blocks of runs.

    Args:
        number_per_run: the number of runs in a block.
        raw_times: the seconds that each block took.
        label: what was measured.
    """

    def __init__(self, number_per_run: int, raw_times: list[float], label: str):
        self.number_per_run, self.raw_times, self.label = number_per_run, raw_times, label

    @property
    def times(self) -> list[float]:
        """The seconds that a run took on average, for each block."""
        return [seconds / self.number_per_run for seconds in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The difference between the upper and the lower quartile of the times."""
        if len(self.raw_times) < 2:
            return 0.0
        lower, _, upper = statistics.quantiles(self.times, n=4)
        return upper - lower

    def __repr__(self) -> str:
        return (
            f"<gt.utils.benchmark.Measurement of {self.label}: median {self.median * 1e6:.2f} us, "
            f"{len(self.raw_times)} block(s) of {self.number_per_run} run(s)>"
        )


class Timer:
    """A timer of a statement; a run lasts until the workers have computed what it issued.

    Args:
        stmt: the statement.
        setup: a statement that runs once before each block.
        timer: returns the time in seconds, after it has waited for the workers.
        globals: the names that the statements may use.
        label: what is measured, in the repr; by default the statement.
        sub_label: a further part of the label.
        description: a further part of the label.
        num_threads: accepted as in PyTorch; workers use all cores of their processes.

    >>> from gt.utils import benchmark
    >>> timed = benchmark.Timer("x * 2", globals={"x": gt.ones(2)}).timeit(10)
    >>> timed.number_per_run, timed.mean > 0
    (10, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        timer: Any = None,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        num_threads: int = 1,
    ):
        parts = [part for part in (label or stmt, sub_label, description) if part]
        self._label = ", ".join(parts)
        self._timer = timeit.Timer(stmt, setup, timer or _now, globals)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Run the statement `number` times, after some runs that are not counted."""
        self._timer.timeit(max(number // 100, 2))
        return Measurement(number, [self._timer.timeit(number)], self._label)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Run blocks of the statement for at least `min_run_time` seconds.

        Args:
            callback: called with the number of runs and the seconds of each block.
            min_run_time: the least number of seconds in all.
        """
        number = 1
        while (seconds := self._timer.timeit(number)) < min_run_time / 100:
            number *= 10 if seconds < min_run_time / 1000 else 2
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._label)

    adaptive_autorange = blocked_autorange


def _now() -> float:
    synchronize()
    return timeit.default_timer()


show_callers(globals())
