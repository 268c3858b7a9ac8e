"""The sides of a benchmark: processes that run rounds on demand."""

import os
import sys
import time
from pathlib import Path

from programs import Asked


class Side:
    """A process that prints `ready`, then answers each line, the name of a work, with a line."""

    def __init__(
        self,
        script: str | Path,
        *arguments: str,
        environment: dict[str, str] | None = None,
        python: str = sys.executable,
    ):
        self.process = Asked(
            [python, Path(script).resolve(), *arguments],
            env={**os.environ, **(environment or {})},
        )
        ready = self.process.stdout.readline().strip() == "ready"
        assert ready, f"{' '.join(arguments)} did not start"

    def ask(self, name: str) -> str:
        """Run one round, after the threads of the previous side have stopped spinning."""
        time.sleep(0.25)
        return self.process.ask(name)

    def stop(self) -> None:
        """End the process."""
        self.process.stop(timeout=30)


def in_turn(runners: dict[str, Side], rounds: int) -> dict[str, list[str]]:
    """Run alternating rounds on all sides, and end them; return the answers of each."""
    answers: dict[str, list[str]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            answers[name].append(runner.ask("go"))
    for runner in runners.values():
        runner.stop()
    return answers


def write_part(page: Path, heading: str, lines: list[str]) -> None:
    """Replace the text under a heading of a page, up to the next heading, by lines."""
    before, _, after = page.read_text().partition(heading + "\n")
    places = [at for mark in ("\n## ", "\n### ") if (at := after.find(mark)) >= 0]
    rest = after[min(places) :] if places else ""
    page.write_text("\n".join([f"{before.rstrip()}\n", heading, "", *lines, rest]))
