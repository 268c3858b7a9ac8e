"""Measure the cost of many live tensors of a session to the server, itself, and another session.

Server, workers of one thread and two clients are separate processes. Prints a table like the one in
docs/recovery.md; round trips are the median, the 99th and 99.9th percentile, and the longest.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from sides import Side

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster

RUNNER = str(Path(__file__).parent / "processes" / "live.py")


def memory(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def trips(side: Side) -> str:
    """Return percentiles of a session's round trips and the longest, in milliseconds."""
    times = sorted(map(float, side.process.stdout.readline().split()))
    at = [times[int((len(times) - 1) * part)] * 1000 for part in (0.5, 0.99, 0.999, 1)]
    return " / ".join(f"{time:.1f}" for time in at)


def measure(live: int, seconds: float, workers: int, *options: str) -> str:
    """Return the table row for a number of live tensors."""
    with ExitStack() as stack:
        address, processes = stack.enter_context(
            cluster(workers, *options, worker_options=["--threads", "1"])
        )
        server, worker = processes[0].pid, processes[1].pid
        tenant, other = Side(RUNNER, address), Side(RUNNER, address)
        stack.callback(tenant.stop)
        stack.callback(other.stop)
        before = memory(server), memory(worker)
        tenant.process.ask(f"hold {live}")
        held = memory(server), memory(worker)
        cells = [f"{live:,}"]
        for after, first in zip(held, before, strict=True):
            cells.append(f"{(after - first) / live:.0f} B")
        for command in ("loop", "steps"):
            tenant.process.say(f"{command} {seconds}")
            other.process.say(f"trips {seconds}")
            beside = trips(other)
            time = float(tenant.process.stdout.readline())
            cells += [f"{time * 1e6:.1f} us", beside]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", type=int, nargs="+", default=[1000, 200_000, 1_000_000])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--journal", action="store_true", help="start the server with --state")
    arguments = parser.parse_args()
    titles = ["live tensors", "each at the server", "at a worker"]
    titles += ["an instruction, none changes", "another session's round trips (ms)"]
    titles += ["an instruction, each changes one", "another session's round trips (ms)"]
    print(f"| {' | '.join(titles)} |")
    print("| --- " * len(titles) + "|")
    for live in arguments.live:
        with tempfile.TemporaryDirectory() as state:
            options = ["--state", state] if arguments.journal else []
            print(measure(live, arguments.seconds, arguments.workers, *options), flush=True)


if __name__ == "__main__":
    main()
