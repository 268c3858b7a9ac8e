"""Whether an engine is right: what is missing, wrong and slow, against the native engine.

`python -m gt.engines.check mymodule:MyEngine` prints a report, and `check` gives one. Every
operation is tried with all dtypes that it takes, and shapes without elements, of odd lengths and
with broadcasting; then values at the ends of ranges, values that an operation has no result for,
and plans. An engine is checked in a process of its own, which is started anew when an operation
hangs or ends it.
"""

import time
from collections.abc import Sequence

from gt.engines.check.process import Lost, Process
from gt.engines.check.report import Finding, Report, Timing
from gt.engines.check.tasks import Options, chosen, perform
from gt.engines.engine import Engine

__all__ = ["Finding", "Report", "Timing", "check"]


def check(
    engine: str | type[Engine] | Engine,
    *,
    only: Sequence[str] | None = None,
    device: int = 0,
    samples: int | None = None,
    seed: int = 0,
    limit: float = 10,
) -> Report:
    """Check an engine, and give what was found.

    Args:
        engine: Its name, as GT_BACKEND takes it; its class; or an engine itself. An engine itself
            is checked in this process: one that hangs, hangs here, and what it prints is not told.
        only: What to check, by the names that `python -m gt.engines.check --list` prints.
        device: The number of the GPU to compute on.
        samples: How many cases of an operation to try at most; all if None.
        seed: Which cases these are.
        limit: How many seconds one call may take. Compiling may take twelve times as long.

    Raises:
        ValueError: There is nothing of a name in `only`.

    Example:
        >>> from gt.engines.check import check
        >>> check("numpy", only=["values", "add"]).ok
        True
    """
    tasks, options, start = chosen(only), Options(samples, seed), time.monotonic()
    if isinstance(engine, Engine):
        report = Report(type(engine).__name__)
        for task in tasks:
            perform(engine, task, options, report.take)
    else:
        name = engine if isinstance(engine, str) else f"{engine.__module__}:{engine.__qualname__}"
        report = Report(name)
        _in_processes(report, tasks, device, options, limit)
    report.seconds = time.monotonic() - start
    return report


def _in_processes(
    report: Report, tasks: list[str], device: int, options: Options, limit: float
) -> None:
    """Have tasks done in one process after another: each loss ends one, and the task it did."""
    left = list(reversed(tasks))
    while left:
        process, task, at = Process(report.engine, device, options, limit), "load", ""
        try:
            is_loaded = False
            for kind, what in process.load():
                is_loaded |= kind == "loaded"
                report.take(kind, what)
            if not is_loaded:
                return
            while left:
                task, at = left.pop(), ""
                for kind, what in process.perform(task):
                    at = what if kind == "at" else at
                    report.take(kind, what)
        except Lost as lost:
            report.add(Finding("wrong", task, str(lost), at))
            if task == "load":
                return
        finally:
            process.close()
