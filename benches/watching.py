"""Measure the cost of being watched: small additions while `gt top` or `gt trace` is attached.

Writes the part "Watching" of docs/benchmarks.md. Rounds alternate; "none again" shows the noise.
"""

import argparse
import os
import pty
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import gt

HEADING = "## Watching\n"
LENGTH, REPEATS = 20_000, 8

#: The command of each watcher; None for no watcher.
SIDES = {
    "none": None,
    "gt top": ["top"],
    "gt trace": ["trace", "-s", "600", "-o", "trace.log"],
    "none again": None,
}


def chain() -> float:
    """Run a chain of additions; return the microseconds of one."""
    x = gt.ones(8)
    start = time.perf_counter()
    for _ in range(LENGTH):
        x = x + 1
    total = x.sum().item()
    assert total == 8 * (LENGTH + 1), total
    return (time.perf_counter() - start) / LENGTH * 1e6


class Watcher:
    """A command that watches this process, in its own terminal."""

    def __init__(self, command: list[str], folder: str):
        self.terminal, inside = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gt", *command, "--pid", str(os.getpid())],
            stdin=inside,
            stdout=inside,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
        )
        os.close(inside)
        # Wait until it is attached. `drain` must not block.
        time.sleep(0.8)
        os.set_blocking(self.terminal, False)

    def drain(self) -> None:
        """Read and discard its output."""
        try:
            while os.read(self.terminal, 1 << 16):
                pass
        except OSError:
            return

    def stop(self) -> None:
        """End the command."""
        assert self.process.poll() is None, "the watcher has ended"
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self.terminal)


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the times of all sides."""
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(5):
        chain()
    with TemporaryDirectory() as folder:
        for _ in range(rounds):
            for side, command in SIDES.items():
                watcher = Watcher(command, folder) if command else None
                for _ in range(REPEATS):
                    times[side].append(chain())
                    if watcher:
                        watcher.drain()
                if watcher:
                    watcher.stop()
                time.sleep(0.25)
    return times


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", type=Path, help="the page to write")
    args = parser.parse_args()
    times = measure(args.rounds)
    median = {side: statistics.median(values) for side, values in times.items()}
    base = median["none"]
    targets = {"gt top": "at most 1.05 x", "gt trace": "at most 1.05 x"}
    lines = [
        f"| {side} | {us:.3f} us | **{us / base:.3f} x** | {targets.get(side, '')} |"
        for side, us in median.items()
    ]
    part = f"""{HEADING}
The small addition, in a chain, embedded: {args.rounds} alternating rounds, medians. Made by
`python benches/watching.py --write docs/benchmarks.md`.

| watcher | an addition | of none | target |
| --- | --- | --- | --- |
{chr(10).join(lines)}
"""
    print(part)
    if args.write:
        text = args.write.read_text()
        before, _, after = text.partition(HEADING)
        rest = re.search(r"\n##? .*", after, re.DOTALL)
        args.write.write_text(
            before.rstrip() + "\n\n" + part.rstrip() + "\n" + (rest.group() if rest else "")
        )


if __name__ == "__main__":
    main()
