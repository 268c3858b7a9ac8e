"""Measure GT beside PyTorch eager, in one run, and write the table for docs/benchmarks.md.

Rounds alternate between the sides; the table has medians over the rounds. PyTorch is measured
twice: its ratio to itself (A/A) shows the noise.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from programs import Asked, Printing

HERE = Path(__file__).resolve().parent
NAMES = {
    "add": "small add, chain of 1,000, per operation",
    "item": "(a + b).sum().item()",
    "matmul": "matmul 1000 x 1000 + fetch",
    "mlp": "MLP 784-256-10, batch 64, SGD step",
}
TARGETS = {
    "add": ("0.5 x", "1.0 x"),
    "item": ("4 x", "150 us"),
    "matmul": ("1.05 x", "1.5 x"),
    "mlp": ("1.0 x", "1.3 x"),
}


class Runner:
    """A benchmark process that runs rounds on demand."""

    def __init__(self, side: str, threads: int):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.process = Asked(
            [sys.executable, HERE / "processes" / "side.py", side, str(threads)],
            env=environment,
        )
        assert self.process.stdout.readline().strip() == "ready", f"{side} did not start"

    def run(self, name: str) -> dict:
        """Run one round, after the threads of the previous side have stopped spinning."""
        time.sleep(0.25)
        return json.loads(self.process.ask(name))

    def stop(self) -> None:
        """End the process."""
        self.process.stop(timeout=20)


def cluster(threads: int) -> tuple[str, list[subprocess.Popen]]:
    """Start a server and a worker, pinned to one core if `threads` is 1.

    Returns:
        The address and the processes.
    """
    pin = ["taskset", "-c", "0"] if threads == 1 else []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Printing([*pin, sys.executable, "-m", "gt.server", "-p", str(port)])
    server.stdout.readline()
    worker = Printing([*pin, sys.executable, "-m", "gt.worker", "-p", str(port)])
    worker.stdout.readline()
    return f"localhost:{port}", [worker, server]


def cpu_seconds(processes: list[subprocess.Popen]) -> float:
    """Return the CPU time that processes have used so far, in seconds."""
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def first_result(command: str, rounds: int) -> float:
    """Return the median time of a new process that prints a first result, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", command], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(threads: int, rounds: int, works: list[str]) -> list[str]:
    """Run some works on all sides; return the table's rows."""
    address, processes = cluster(threads)
    sides = {"torch": "torch", "again": "torch", "embedded": "embedded", "tcp": address}
    runners = {name: Runner(side, threads) for name, side in sides.items()}
    lines = []
    for work in works:
        results: dict[str, list] = {side: [] for side in runners}
        served = 0.0
        for _ in range(rounds):
            for side, runner in runners.items():
                before = cpu_seconds(processes)
                results[side].append(runner.run(work))
                if side == "tcp":
                    served += cpu_seconds(processes) - before
        median = {
            side: statistics.median(result["us"] for result in all_)
            for side, all_ in results.items()
        }
        cpu = {
            side: statistics.median(result["cpu_us"] for result in all_)
            for side, all_ in results.items()
        }
        base = median["torch"]
        lines.append(
            f"| {NAMES[work]} | {threads} | {base:,.2f} us | {median['again'] / base:.2f} | "
            f"{median['embedded']:,.2f} us = **{median['embedded'] / base:.2f} x** "
            f"(at most {TARGETS[work][0]}) | "
            f"{median['tcp']:,.2f} us = **{median['tcp'] / base:.2f} x** "
            f"(at most {TARGETS[work][1]}) | "
            f"{cpu['torch']:,.2f} / {cpu['embedded']:,.2f} / {cpu['tcp']:,.2f} us |"
        )
        print(lines[-1], flush=True)
    for runner in runners.values():
        runner.stop()
    for process in processes:
        process.terminate()
        process.wait(timeout=20)
    return lines


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--work", choices=NAMES, nargs="+", help="only these, and no page")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    args = parser.parse_args()

    import gt
    import torch

    lines = []
    for threads in args.threads:
        lines += measure(threads, args.rounds, args.work or list(NAMES))
    if args.work:
        return
    gt_first = first_result("import gt; print(gt.ones(2) + 1)", args.rounds)
    torch_first = first_result("import torch; print(torch.ones(2) + 1)", args.rounds)
    page = f"""# Benchmarks

GT {gt.__version__} beside PyTorch {torch.__version__} eager, measured in one run by `make bench`:
{args.rounds} rounds that alternate between the sides, medians. Ratios matter, not the figures.
A/A is PyTorch against itself in another process: the noise of this machine. "tcp" is a server and
a worker in separate processes over loopback, encrypted; their CPU time is not included in that of
the client in the last column. PyTorch's SGD is its fused one.

Machine: {os.cpu_count()} cores, {cpu_name()}, Linux {platform.release()},
Python {platform.python_version()}.

| work | threads | PyTorch | A/A | embedded | tcp | CPU: PyTorch / embedded / tcp client |
| --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}

| other | measured | target |
| --- | --- | --- |
| `import gt` to first printed result, new process | {gt_first:.2f} s (PyTorch: \
{torch_first:.2f} s) | at most 0.3 s |

With one thread each side is pinned to one core, on which GT's client and worker cannot overlap.
"""
    print(page)
    if args.write:
        args.write.write_text(page + kept(args.write))


def kept(path: Path) -> str:
    """Return the hand-written text below the tables, which is kept."""
    _, heading, words = path.read_text().partition("\n## What the table says")
    return heading + words


def cpu_name() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
