"""Measure sharding over two workers, in one run, and write its table for docs/benchmarks.md.

Rounds alternate between the sides: PyTorch's DTensor on two Gloo ranks, GT embedded, and GT on a
server with two worker processes of one thread each.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from programs import Asked, Printing

HERE = Path(__file__).resolve().parent


class Runner:
    """A benchmark process that runs rounds on demand."""

    def __init__(self, side: str):
        self.process = Asked(
            [sys.executable, HERE / "processes" / "sharding.py", side],
        )
        assert self.process.stdout.readline().strip() == "ready", f"{side} did not start"
        self.times: dict[str, list[float]] = {}

    def run(self, name: str) -> None:
        """Run one round, after the threads of the previous side have stopped spinning."""
        time.sleep(0.25)
        self.times.setdefault(name, []).append(json.loads(self.process.ask(name))["us"])

    def median(self, name: str) -> float:
        """Return the median over the rounds, without the first one."""
        return statistics.median(self.times[name][1:])

    def stop(self) -> None:
        """End the process."""
        self.process.stop(timeout=30)


def cluster(workers: int, python: str = sys.executable) -> tuple[str, list[subprocess.Popen]]:
    """Start a server and workers of one thread; return the address and the processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes: list[subprocess.Popen] = []
    for command in [["gt.server"], *[["gt.worker", "--threads", "1"]] * workers]:
        process = Printing([python, "-m", *command, "-p", port])
        process.stdout.readline()
        processes.insert(0, process)
    return f"localhost:{port}", processes


def measure(rounds: int) -> list[str]:
    """Run all rounds; return the rows of the table."""
    two, processes = cluster(2)
    one, more = cluster(1)
    dtensor, embedded = Runner("dtensor"), Runner("embedded")
    tcp, alone = Runner(two), Runner(one)
    for _ in range(rounds + 1):
        for name in ("mlp", "add"):
            for runner in (dtensor, embedded, tcp):
                runner.run(name)
    for _ in range(max(3, rounds // 3) + 1):
        for runner in (alone, tcp):
            runner.run("product")
        for runner in (embedded, tcp):
            runner.run("move")
            runner.run("memcpy")
    for runner in (dtensor, embedded, tcp, alone):
        runner.stop()
    for process in processes + more:
        process.terminate()
        process.wait(timeout=20)
    lines = []
    for name, title, target in (
        ("mlp", "MLP 784-256-10, batch 64, data parallel on 2 workers, a step", "0.25 x"),
        ("add", "small add of a sharded tensor, per operation", "0.2 x"),
    ):
        base = dtensor.median(name)
        sides = " | ".join(
            f"{side.median(name):,.2f} us = **{side.median(name) / base:.2f} x**"
            for side in (embedded, tcp)
        )
        lines.append(f"| {title} | DTensor: {base:,.2f} us | {sides} | at most {target} |")
    base = alone.median("product")
    lines.append(
        f"| matmul 4096 x 4096, row-sharded | one worker: {base / 1e6:.2f} s | | "
        f"{tcp.median('product') / 1e6:.2f} s = **{tcp.median('product') / base:.2f} x** | "
        "at most 0.55 x |"
    )
    copy = embedded.median("memcpy") / 1e3
    moves = [side.median("move") / side.median("memcpy") for side in (embedded, tcp)]
    lines.append(
        f"| transfer of 256 MB from worker to worker | memcpy: {copy:.0f} ms | "
        f"{embedded.median('move') / 1e3:.1f} ms = **{moves[0]:.2f} x** | "
        f"{tcp.median('move') / 1e3:.1f} ms = **{moves[1]:.2f} x** | at most 1.3 x, 2 x |"
    )
    return lines


def main() -> None:
    """Measure, print, and write the section if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", type=Path, help="the page whose section is written")
    args = parser.parse_args()
    import torch

    lines = measure(args.rounds)
    section = f"""## Sharding

Two workers of one thread each, measured in one run by `make bench`: {args.rounds} rounds that
alternate between the sides, medians. "DTensor" is PyTorch {torch.__version__} on two Gloo
ranks; "processes" is a server with two workers over loopback, encrypted, tensors by shared memory.

| work | compared with | embedded | processes | target |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}

"""
    print(section)
    if args.write:
        page = args.write.read_text()
        before, _, after = page.partition("## Sharding\n")
        _, heading, words = after.partition("### What this table says")
        args.write.write_text(before.rstrip() + "\n\n" + section + heading + words)


if __name__ == "__main__":
    main()
