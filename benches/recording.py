"""Measure the cost of recording a session, and the speed of its replay.

Writes the part "Recording" of docs/benchmarks.md. Rounds alternate; "plain again" shows the noise.

usage: recording.py [--rounds N] [--write PAGE]
"""

from __future__ import annotations

import argparse
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from programs import Printing
from sides import Side, in_turn, write_part

HEADING = "## Recording"
PROCESS = Path(__file__).parent / "processes" / "recording.py"
WORKS = ("a small addition", "an addition and its value", "an MLP step and its loss")
SIDES = ("plain", "recorded", "plain again")
#: The most that recording may cost.
GOALS = {"embedded": 1.2, "tcp": 1.05}
STEPS = 2_000


def measure(where: str, address: str, rounds: int, folder: Path) -> list[str]:
    """Return the lines of the table for one place."""
    runners = {}
    for side in SIDES:
        environment = {"GT_RECORD": str(folder / f"{where}.gts")} if side == "recorded" else {}
        runners[side] = Side(PROCESS, address, environment=environment)
    for runner in runners.values():
        runner.ask("warm up")
    answers = in_turn(runners, rounds)
    lines = []
    for index, work in enumerate(WORKS):
        plain, recorded, again = (median_of(answers[side], 2 * index) for side in SIDES)
        used, more, _ = (median_of(answers[side], 2 * index + 1) for side in SIDES)
        lines.append(
            f"| {where} | {work} | {plain:.2f} us | {recorded:.2f} us | "
            f"**{recorded / plain:.3f} x** | {again / plain:.3f} x | {GOALS[where]} x | "
            f"{used:.2f} us | {more / used:.3f} x |"
        )
    return lines


def median_of(answers: list[str], number: int) -> float:
    """Return the median of a number of each answer."""
    return statistics.median(float(answer.split()[number]) for answer in answers)


def replay(folder: Path) -> str:
    """Return how long a training program and its replay take."""
    path = folder / "training.gts"
    program = Path(__file__).parents[1] / "tests" / "programs" / "recording" / "training.py"
    start = time.perf_counter()
    command = ["-m", "gt", "record", "-o", str(path), "--", sys.executable, str(program)]
    subprocess.run([sys.executable, *command, str(STEPS)], check=True, capture_output=True)
    recorded = time.perf_counter() - start
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "gt", "replay", str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    whole = time.perf_counter() - start
    found = re.search(r" in ([\d.]+) s", done.stdout)
    assert found is not None, done.stdout
    seconds = float(found[1])
    return (
        f"A program of {STEPS:,} training steps takes {recorded:.2f} s recorded; `gt replay` takes "
        f"{whole:.2f} s, {seconds:.2f} s of them for the stream."
    )


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", type=Path, help="the page to write")
    args = parser.parse_args()
    lines = [
        f"Medians of {args.rounds} alternating rounds. Made by "
        "`python benches/recording.py --write docs/benchmarks.md`.",
        "",
        "| session | work | plain | recorded | cost | plain again | goal | processors | cost |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    with TemporaryDirectory() as name:
        folder = Path(name)
        lines += measure("embedded", "-", args.rounds, folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        processes = [start(module, port) for module in ("gt.server", "gt.worker")]
        try:
            lines += measure("tcp", f"localhost:{port}", args.rounds, folder)
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(timeout=20)
        lines += ["", replay(folder)]
    print("\n".join(lines))
    if args.write:
        write_part(args.write, HEADING, lines)


def start(module: str, port: str) -> Printing:
    """Start a server or a worker; return its process once it is ready."""
    process = Printing([sys.executable, "-m", module, "-p", port])
    process.stdout.readline()
    return process


if __name__ == "__main__":
    main()
