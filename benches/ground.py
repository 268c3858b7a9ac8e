"""Measure the dispatcher, hot iterations and concurrent sessions, in one run.

Writes the part "Basic costs" of docs/benchmarks.md. With `--base PYTHON`, an interpreter with
another version of GT, all works in Python are measured with that version as well, twice: its ratio
to itself (A/A) shows the noise. Rounds alternate between the versions; the table has medians.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from programs import Asked, Printing

HERE = Path(__file__).resolve().parent
HEADING = "## Basic costs\n"

#: The program for callgrind: a number of additions, embedded on one thread.
COUNTED = """
import sys, gt
x = one = gt.ones(8)
for _ in range(int(sys.argv[1])):
    x = x + one
x.sum().item()
"""


def cargo(package: str, example: str) -> str:
    """Run an example of a crate; return its output."""
    command = ["cargo", "run", "--release", "--quiet", "-p", package, "--example", example]
    done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def start(python: str, module: str, *arguments: str) -> subprocess.Popen:
    """Start a server or worker and wait for its first line."""
    command = [python, "-m", module, *arguments]
    process = Printing(command)
    process.stdout.readline()
    return process


class Session:
    """A process that runs rounds on demand, as a client or embedded."""

    def __init__(self, python: str, script: str, *arguments: str):
        self.process = Asked(
            [python, HERE / "processes" / script, *arguments],
        )
        assert self.process.stdout.readline() == "ready\n", f"{script} did not start"

    def run(self, name: str) -> float:
        """Run one round; return microseconds."""
        time.sleep(0.1)
        line = self.process.ask(name)
        return float(json.loads(line)["us"] if line.startswith("{") else line)

    def stop(self) -> None:
        """End the process."""
        self.process.stop(timeout=60)


class Side:
    """One version of GT: a server with one worker, one with two, and sessions on them."""

    def __init__(self, python: str):
        self.python = python
        self.processes: list[subprocess.Popen] = []
        one, two = self.cluster(1), self.cluster(2)
        self.embedded = Session(python, "side.py", "embedded", "2")
        self.tcp = Session(python, "side.py", one, "2")
        self.first, self.second = (Session(python, "ground.py", two) for _ in range(2))

    def cluster(self, workers: int) -> str:
        """Start a server and workers, which have one thread each if there are several."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        self.processes.append(start(self.python, "gt.server", "-p", port))
        threads = ("--threads", "1") if workers > 1 else ()
        for _ in range(workers):
            self.processes.insert(0, start(self.python, "gt.worker", "-p", port, *threads))
        return f"localhost:{port}"

    def round(self) -> dict[str, float]:
        """Run a round of everything; return microseconds by name."""
        found = {}
        for name in ("add", "item", "mlp"):
            found[f"{name} embedded"] = self.embedded.run(name)
            found[f"{name} tcp"] = self.tcp.run(name)
        for name in ("fixed", "moving"):
            found[name] = self.second.run(name)
        for load in ("busy", "hold"):
            self.first.run(load)
            found[load] = self.second.run("chain")
            self.first.run("rest")
        return found

    def stop(self) -> None:
        """End all processes."""
        for session in (self.embedded, self.tcp, self.first, self.second):
            session.stop()
        for process in self.processes:
            process.terminate()
            process.wait(timeout=60)


#: The description of each row.
ROWS = {
    "add embedded": "small addition, embedded",
    "add tcp": "small addition, tcp",
    "item embedded": "(a + b).sum().item(), embedded",
    "item tcp": "(a + b).sum().item(), tcp",
    "mlp embedded": "MLP 784-256-10, batch 64, SGD step, embedded",
    "mlp tcp": "the same, tcp",
    "fixed": "data-parallel MLP step over `X[0:64]`, two workers",
    "moving": "the same over `X[i:i+64]`",
    "busy": "addition beside a session that computes on another worker",
    "hold": "addition beside a session that waits on this worker for a block of the other worker",
}


def instructions(python: str) -> float:
    """Return the machine instructions of one small addition, embedded, in all threads."""
    totals = []
    for count in (1_000, 5_000):
        with tempfile.NamedTemporaryFile() as out:
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}"]
            done = subprocess.run(
                [*command, python, "-c", COUNTED, str(count)],
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "GT_AUTO_COMPILE": "0"},
                check=True,
            )
            totals.append(int(re.findall(r"Collected : (\d+)", done.stderr)[0]))
    return (totals[1] - totals[0]) / 4_000


def sessions(base: str | None, rounds: int) -> list[str]:
    """Measure all works in Python; return the table's rows."""
    pythons = {"this": sys.executable}
    if base:
        pythons |= {"base": base, "again": base}
    sides = {name: Side(python) for name, python in pythons.items()}
    torch = Session(sys.executable, "side.py", "torch", "2")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    torch_found = []
    for _ in range(rounds):
        torch_found.append({name: torch.run(name) for name in ("add", "item", "mlp")})
        for name, side in sides.items():
            found[name].append(side.round())
    torch.stop()
    for side in sides.values():
        side.stop()

    def median(rounds_of: list[dict[str, float]], row: str) -> float:
        return statistics.median(one[row] for one in rounds_of)

    def cell(us: float, of: float | None) -> str:
        return f"{us:,.2f} us" + (f" = {us / of:.2f} x" if of else "")

    lines = []
    for row, words in ROWS.items():
        work = row.split()[0]
        one = median(torch_found, work) if work in torch_found[0] else None
        if row in ("moving", "hold"):
            compared = {"moving": "fixed", "hold": "busy"}[row]
        else:
            compared = None
        cells = []
        for rounds_of in found.values():
            of = median(rounds_of, compared) if compared else one
            cells.append(cell(median(rounds_of, row), of))
        cells += ["", ""] if not base else []
        lines.append(f"| {words} | {cell(one, None) if one else ''} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure, print, and write the part of the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--base", help="an interpreter with another version of GT")
    parser.add_argument("--write", type=Path, help="the page to write a part of")
    args = parser.parse_args()
    lines = sessions(args.base, args.rounds)
    counts = [
        instructions(python) for python in [sys.executable, *([args.base] if args.base else [])]
    ]
    counted = " / ".join(f"{count:,.0f}" for count in counts)
    part = f"""{HEADING}
Measured by `python benches/ground.py`: {args.rounds} rounds, medians; the base is the previous
version (`--base`), and is measured twice. Ratios are to PyTorch, or of `X[i:i+64]` to fixed rows,
and of a neighbour that waits to one that computes elsewhere.

| work | PyTorch | this version | base | base again |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}

Machine instructions in user mode of one small addition, embedded, cold, all threads (callgrind):
{counted} (this version{" / base" if args.base else ""}).

The dispatcher alone, on one core (`cargo run --release -p gt-dispatcher --example throughput`):

{cargo("gt-dispatcher", "throughput")}
"""
    print(part)
    if args.write:
        page = args.write.read_text()
        before, heading, rest = page.partition(HEADING)
        kept = rest[rest.find("### What this table says") :] if heading else ""
        args.write.write_text(before.rstrip() + "\n\n" + part + "\n" + kept)


if __name__ == "__main__":
    main()
