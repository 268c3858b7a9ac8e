"""Measure GT on a GPU beside PyTorch: eager, as a CUDA graph and with torch.compile.

Writes the part "On a GPU" of docs/benchmarks.md. Each side has its own process; rounds alternate
between the sides, and the table has medians over the rounds. PyTorch eager is in the table twice:
its ratio to itself (A/A) shows the noise. `--tiny` runs small versions of everything on the CPU, as
a test of this program: its figures are meaningless, and are not written. All sides are on the GPU
at the same time, and use up to 60 GB of its memory.
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from programs import Asked

HERE = Path(__file__).resolve().parent
HEADING = "## On a GPU\n"

#: name: (description, sides, (goal: largest ratio of GT's time, to which side))
WORKS = {
    "mlp": (
        "MLP 784-256-10, batch 64, SGD step",
        ("eager", "again", "graph", "compile", "gt"),
        (0.3, "eager"),
    ),
    "transformer": (
        "bfloat16 transformer step: 8 layers, d 1024, 16 heads, T 1024, batch 8, AdamW",
        ("eager", "again", "graph", "compile", "gt"),
        (1.0, "compile"),
    ),
    "add": (
        "small addition, chain of 1,000, per operation",
        ("eager", "again", "graph", "compile", "gt"),
        (0.8, "eager"),
    ),
    "copy": (
        "10 GB to the device, as ten tensors",
        ("eager", "again", "bus", "gt"),
        (1 / 0.9, "bus"),
    ),
    "decode": (
        "attention with a cache of keys and values: 8 layers, 16 heads of 64, batch 8, "
        "cache 4,096, per token",
        ("eager", "again", "graph", "compile", "gt"),
        (1.0, "compile"),
    ),
}


class Runner:
    """A process that runs one work on one side, on demand."""

    def __init__(self, side: str, work: str, tiny: bool):
        same = {"again": "eager", "bus": "eager"}.get(side, side)
        environment = {**os.environ}
        if side == "gt" and not tiny:
            environment["GT_BACKEND"] = "pytorch"
        if side == "gt" and tiny:
            paths = [str(HERE.parent / "tests" / "gpu"), os.environ.get("PYTHONPATH")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
            environment["GT_BACKEND"] = "standin:StandInEngine"
        script = str(HERE / "processes" / "gpu.py")
        self.errors = tempfile.TemporaryFile("w+")
        self.process = Asked(
            [sys.executable, script, same, "bus" if side == "bus" else work, *["tiny"] * tiny],
            stderr=self.errors,
            env=environment,
        )

    def wait_until_ready(self) -> None:
        """Wait for the end of the first use, including compilation."""
        self.first_s = float(self._answer().removeprefix("ready "))

    def run(self) -> float:
        """Run one round; return the seconds of one use."""
        time.sleep(0.1)
        self.process.say("go")
        return float(self._answer())

    def _answer(self) -> str:
        if line := self.process.stdout.readline():
            return line
        self.process.wait(timeout=120)
        self.errors.seek(0)
        said = self.errors.read().strip().splitlines()[-1:] or ["it ended"]
        raise ChildProcessError(said[0].replace("|", "/"))

    def stop(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(timeout=120)
        self.errors.close()


def attempt(act: Callable[[], None], side: str, failed: dict[str, str]) -> None:
    """Call a function of a side; if its process has ended, record the reason in `failed`."""
    try:
        act()
    except (ChildProcessError, BrokenPipeError) as error:
        failed[side] = str(error)


def measure(work: str, rounds: int, tiny: bool) -> tuple[list[str], bool]:
    """Run one work on all sides; return the table's rows, and whether all sides ran."""
    text, sides, (most, of) = WORKS[work]
    runners: dict[str, Runner] = {}
    times: dict[str, list[float]] = {side: [] for side in sides}
    failed: dict[str, str] = {}
    for side in sides:  # Not at the same time: compilers use all processors.
        runners[side] = Runner(side, work, tiny)
        attempt(runners[side].wait_until_ready, side, failed)
    for _ in range(rounds):
        for side, runner in runners.items():
            if side not in failed:
                attempt(lambda: times[side].append(runner.run()), side, failed)  # noqa: B023
    for runner in runners.values():
        runner.stop()
    median = {side: statistics.median(times[side]) for side in sides if side not in failed}
    lines = []
    for side in sides:
        if side in failed:
            lines.append(f"| {text} | {side} | does not run: {failed[side]} | | | | |")
            continue
        ratios = [
            f"{median[side] / median[base]:.2f} x" if base in median else ""
            for base in ("eager", of)
        ]
        goal = f"at most {most:.2f} x {of}" if side == "gt" else ""
        if side == "gt" and of in median and not tiny:
            goal += ": met" if median[side] <= most * median[of] else ": **missed**"
        lines.append(
            f"| {text} | {side} | {median[side] * 1e6:,.2f} us | {ratios[0]} | {ratios[1]} | "
            f"{goal} | {runners[side].first_s:.1f} s |"
        )
    print("\n".join(lines), flush=True)
    return lines, not failed


def machine(tiny: bool) -> str:
    """Return a description of the GPU, its driver, and the versions."""
    import gt
    import torch

    versions = (
        f"GT {gt.__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}"
    )
    if tiny:
        return f"NO GPU, small versions on the CPU: {versions}"
    gpu = torch.cuda.get_device_properties(0)
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        driver = done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        driver = "unknown"
    return (
        f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB, driver {driver}, "
        f"CUDA {torch.version.cuda}, {os.cpu_count()} cores, {versions}"
    )


def write(path: Path, part: str) -> None:
    """Replace the part of the page by a new one."""
    before, _, after = path.read_text().partition(HEADING)
    rest = re.search(r"\n## .*", after, re.DOTALL)
    path.write_text(
        before.rstrip() + "\n\n" + part.rstrip() + "\n" + (rest.group() if rest else "")
    )


def main() -> int:
    """Measure, print, and write the page if asked to; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, help="default 10, or 1 with --tiny")
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--work", choices=WORKS, nargs="+", default=list(WORKS))
    parser.add_argument("--tiny", action="store_true", help="small versions on the CPU, as a test")
    args = parser.parse_args()
    rounds = args.rounds or (1 if args.tiny else 10)

    import torch

    if not args.tiny and not torch.cuda.is_available():
        print("NO GPU: nothing was measured (--tiny runs small versions)", file=sys.stderr)
        return 0
    lines: list[str] = []
    fine = True
    for work in args.work:
        made, all_ran = measure(work, rounds, args.tiny)
        lines, fine = lines + made, fine and all_ran
    part = f"""{HEADING}
Machine: {machine(args.tiny)}.

Made by `make gpu`, or `python tests/gpu/run.py --write docs/benchmarks.md`: {rounds} alternating
rounds, medians. "again" is PyTorch eager against itself: the noise. "graph" is a whole step as one
CUDA graph of PyTorch's, "compile" torch.compile of the step and the optimizer, "bus" copies of
pinned memory. "of goal" is the ratio to the side that the goal names. "first" is the time to the
end of the first use, including compilation.

| work | side | time | of eager | of goal | goal | first |
| --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}
"""
    print(part)
    if args.write and not args.tiny:
        write(args.write, part)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
