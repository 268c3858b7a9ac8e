"""Check an engine against the native engine: what is missing, wrong or slow.

`python -m gt.engines.check mymodule:MyEngine` prints a report; `check` returns one. Every operation
is tried with all dtypes that it accepts, and with empty, odd-length and broadcast shapes; then with
values at the limits of dtypes and values for which it must fail. Plans are checked too. The engine
runs in a child process, which is restarted when an operation hangs or kills it.
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
    """Check an engine, and return a report.

    Args:
        engine: Its name, as in GT_BACKEND; its class; or an instance. An instance is checked in
            this process: if it hangs, `check` hangs, and what it prints is not reported.
        only: What to check: names that `python -m gt.engines.check --list` prints.
        device: The number of the GPU to compute on.
        samples: The maximum number of cases per operation; all if None.
        seed: The seed that chooses these cases.
        limit: The time limit for one call, in seconds. Compiling may take twelve times as long.

    Raises:
        ValueError: `only` contains an unknown name.

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
    """Run tasks in a child process; when one is lost, skip its current task and start another."""
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
