"""Measure how much of the transfer time of batches `gt.data.prefetch` hides.

Prints a table. A step takes a fixed time on a simulated device (`workloads/data.py`), so that only
the transfer is measured. A loop that waits for each loss hides nothing of it without prefetching;
in a loop that does not wait, GT transfers batches ahead of the computation anyway.
"""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
from pathlib import Path

from programs import Printing
from sides import Side

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {"GT_BACKEND": "numpy", "GT_KERNELS": "workloads.data", "PYTHONPATH": str(HERE)}
MODES = ("there", "transferred", "prefetched")
#: Sizes of a batch in MiB, whose transfer takes less time than a step.
LARGE, SMALL = [32], [2, 4]
#: A command prefix for a process in its own PID namespace, which shares no memory, as on another
#: machine.
APART = ["unshare", "--pid", "--fork", "--kill-child=SIGKILL"]


def environment() -> dict[str, str]:
    """Return the environment of runners, servers and workers."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}


def start_cluster(prefix: list[str]) -> tuple[str, list[subprocess.Popen]]:
    """Start a server and a worker; return the address and the processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes: list[subprocess.Popen] = []
    for program in ("gt.server", "gt.worker"):
        command = [*prefix, sys.executable, "-m", program, "-p", port]
        process = Printing(command, env=environment(), start_new_session=True)
        processes.append(process)
        assert process.stdout.readline().startswith("gt "), f"{program} did not start"
    return f"localhost:{port}", processes[::-1]


def can_be_apart() -> bool:
    """Return whether processes can be started in their own PID namespace."""
    try:
        return subprocess.run([*APART, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def measure(name: str, address: str, sizes: list[int], args: argparse.Namespace) -> list[str]:
    """Return the table rows of one side."""
    runner = Side(HERE / "processes" / "data.py", address, environment=environment())
    lines = []
    for megabytes in sizes:
        transfer = 0.0
        for loop, waits in (("waits for each loss", True), ("does not wait", False)):
            work = {"megabytes": megabytes, "milliseconds": args.milliseconds}
            work |= {"steps": args.steps, "waits": waits}
            times: dict[str, list[float]] = {mode: [] for mode in MODES}
            for _ in range(args.rounds):
                for mode in MODES:
                    times[mode].append(float(runner.ask(json.dumps({"mode": mode, **work}))))
            there, *others = (statistics.median(times[mode]) for mode in MODES)
            # In a loop that waits for each loss, GT hides nothing without prefetching.
            transfer = transfer or others[0] - there
            alone, prefetched = (1 - (time - there) / transfer for time in others)
            lines.append(
                f"| {name} | {megabytes:g} MiB | {loop} | {there:.2f} ms | {others[0]:.2f} ms "
                f"| {others[1]:.2f} ms | {alone:.0%} | **{prefetched:.0%}** |"
            )
    runner.stop()
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--milliseconds", type=float, default=40, help="duration of a step")
    args = parser.parse_args()
    lines = measure("embedded", "embedded", LARGE, args)
    sides: list[tuple[str, list[str], list[int]]] = [("tcp, one machine", [], LARGE)]
    if can_be_apart():
        sides.append(("tcp, no shared memory", APART, SMALL))
    for name, prefix, sizes in sides:
        address, processes = start_cluster(prefix)
        try:
            lines += measure(name, address, sizes, args)
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGKILL if prefix else signal.SIGTERM)
                process.wait(timeout=20)
    columns = ["where", "a batch", "the loop", "batches are on the worker"]
    columns += ["transferred in the loop", "prefetched", "hidden by GT itself"]
    columns += ["hidden by prefetching"]
    print(
        f"""Steps of {args.milliseconds:g} ms on a simulated device: {args.rounds} alternating
rounds, medians. Hidden is a fraction of the time that the transfer takes in a loop that waits. Made
by `python benches/data.py`.

| {" | ".join(columns)} |
|{" --- |" * len(columns)}
{chr(10).join(lines)}"""
    )


if __name__ == "__main__":
    main()
