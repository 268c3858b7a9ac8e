"""The command lines of servers and workers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: What starts a worker without importing the whole package.
_START = Path(__file__).resolve().parents[1] / "worker" / "start.py"


@dataclass(frozen=True)
class WorkerOptions:
    """What the workers of a cluster are given: the options of `gt worker` of the same names."""

    engine: str | None = None
    threads: int | None = None
    memory: str | None = None
    more: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the number of threads."""
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads is {self.threads}, expected 1 or more")

    def arguments(self) -> list[str]:
        """Return them as arguments of `gt worker`."""
        named = {"--backend": self.engine, "--threads": self.threads, "--memory": self.memory}
        given = [f"{name}={value}" for name, value in named.items() if value is not None]
        return [*given, *self.more]


def server_command(
    *, host: str, publish: str, workers: int, options: Sequence[str] = (), python: str | None = None
) -> list[str]:
    """Return the command of a server at any free port that publishes its address in a file."""
    return [
        *(python or sys.executable, "-m", "gt.server", "-H", host, "-p", "0"),
        *("--publish", publish, "--workers", str(workers), *options),
    ]


def worker_command(
    *, address: str, name: str, wait: float, options: Sequence[str], python: str | None = None
) -> list[str]:
    """Return the command of a worker that waits for the server for some seconds.

    Args:
        address: the server's address.
        name: the worker's name.
        wait: how long it waits for the server to listen.
        options: further options.
        python: the Python of another machine; this one's starts faster.
    """
    program = [python, "-m", "gt.worker"] if python else [sys.executable, str(_START)]
    return [*program, "--address", address, "--id", name, "--wait", f"{wait:g}", *options]
