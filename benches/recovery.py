"""Measure the cost of lineage, and the time that a session takes to resume after a loss.

Server, workers of one thread and client are separate processes. Writes the part "Recovery" of
docs/benchmarks.md.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from programs import Asked
from sides import Side, write_part

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster
from proxy import Proxy
from training import start_server, start_worker

RUNNER = str(Path(__file__).parent / "processes" / "recovery.py")
HEADING = "## Recovery"
WORKER = ["--threads", "1"]

#: (description of the work, its name in the runner, the client's environment)
COSTS = [
    ("a small addition", "addition", {"GT_AUTO_COMPILE": "0"}),
    ("MLP 784-256-10, batch 64, SGD step", "mlp", {"GT_AUTO_COMPILE": "0"}),
    ("the same as a hot path", "mlp", {}),
]


def costs(rounds: int) -> list[str]:
    """Compare servers without lineage, with it, with a journal, and with workers' state as well."""
    titles = ["work over tcp", "without lineage", "with", "with a journal", "and workers' state"]
    titles.append("costs")
    lines = [f"| {' | '.join(titles)} |", "| --- " * len(titles) + "|"]
    for name, work, environment in COSTS:
        with ExitStack() as stack:
            sides = []
            states = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(3)]
            kinds = [["--lineage", "0"], [], ["--state", states[0]], ["--state", states[1]]]
            for options in kinds:
                own = ["--state", states[2]] if states[1] in options else []
                running = cluster(1, *options, worker_options=[*WORKER, *own])
                address, _ = stack.enter_context(running)
                side = Side(RUNNER, address, work, environment=environment)
                stack.callback(side.stop)
                sides.append(side)
            times = [[float(side.ask("time")) for side in sides] for _ in range(rounds)]
        medians = [statistics.median(column) for column in zip(*times, strict=True)]
        ratios = [statistics.median(row[at] / row[0] for row in times) for at in (1, 2, 3)]
        cells = [name, *(f"{median * 1e6:.2f} us" for median in medians)]
        cells.append(", ".join(f"{100 * (ratio - 1):+.1f} %" for ratio in ratios))
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


class Steps:
    """A program that trains, and the time at which it completed each step."""

    def __init__(self, address: str, work: str) -> None:
        self.process = Asked(
            [sys.executable, RUNNER, address, work],
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout.readline() == "ready\n"
        self.done: list[float] = []
        self.process.say("steps 100000")
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.done.append(float(line))

    def gap_after(self, at: float) -> float:
        """Return the longest time between the completion of steps after a moment, in seconds."""
        until = time.time() + 60
        while not self.done or self.done[-1] <= at + 0.005:
            assert time.time() < until, "it hangs"
            time.sleep(0.001)
        time.sleep(0.5)
        later = [done for done in self.done if done > at]
        gaps = [b - a for a, b in zip([at, *later], later, strict=False)]
        return max(gaps[:20])

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


@contextmanager
def training(workers: int, work: str):
    with cluster(workers, worker_options=WORKER) as (address, processes):
        steps = Steps(address, work)
        try:
            yield steps, address, processes
        finally:
            steps.stop()


def kills(count: int, work: str, pause: float) -> list[float]:
    """Kill workers while a program trains on two; return the duration of each standstill."""
    gaps = []
    with training(2, work) as (steps, address, processes):
        for number in range(count):
            # At a random time between two snapshots.
            time.sleep(pause * (0.5 + random.random()))
            victim = processes.pop(1)
            at = time.time()
            victim.kill()
            victim.communicate()
            gaps.append(steps.gap_after(at))
            processes.append(start_worker(address, f"new{number}", *WORKER))
    return gaps


def cuts(count: int, silence: float = 0) -> list[float]:
    """Cut or silence a client's connection; return the duration of each standstill.

    With `silence`, the connection is open but passes nothing for that many seconds, which are not
    part of the result.
    """
    gaps = []
    options = ["--insecure"]
    with cluster(1, *options, worker_options=[*WORKER, *options]) as (address, _):
        proxy = Proxy(int(address.rsplit(":", 1)[1]))
        steps = Steps(f"127.0.0.1:{proxy.port}", "mlp")
        for _ in range(count):
            time.sleep(0.5)
            if silence:
                proxy.hold()
                time.sleep(silence)
            at = time.time()
            (proxy.let_go if silence else proxy.cut)()
            gaps.append(steps.gap_after(at))
        steps.stop()
        proxy.close()
    return gaps


def restarts(count: int, sessions: int, workers: int) -> list[float]:
    """Kill and restart the server; return the standstill of the slowest session each time."""
    gaps = []
    with (
        tempfile.TemporaryDirectory() as state,
        cluster(workers, "--state", state, worker_options=WORKER) as (address, processes),
    ):
        all_steps = [Steps(address, "mlp") for _ in range(sessions)]
        for _ in range(count):
            time.sleep(2)
            server = processes.pop(0)
            at = time.time()
            server.kill()
            server.communicate()
            processes.insert(0, start_server(address, Path(state)))
            gaps.append(max(steps.gap_after(at) for steps in all_steps))
        for steps in all_steps:
            steps.stop()
    return gaps


def power_cuts(count: int, work: str, pause: float) -> list[float]:
    """Kill and restart the server and both workers at once; return each standstill."""
    gaps = []
    with tempfile.TemporaryDirectory() as place, cluster(0) as (address, processes):
        processes.pop().kill()

        def start() -> list[subprocess.Popen]:
            server = start_server(address, Path(place) / "server")
            folders = [f"{place}/w{number}" for number in range(2)]
            workers = [
                start_worker(address, f"w{number}", *WORKER, "--state", folder)
                for number, folder in enumerate(folders)
            ]
            return [server, *workers]

        running = start()
        steps = Steps(address, work)
        for _ in range(count):
            time.sleep(pause)
            at = time.time()
            for process in running:
                process.kill()
            for process in running:
                process.communicate()
            running = start()
            gaps.append(steps.gap_after(at))
        steps.stop()
        for process in running:
            process.kill()
            process.communicate()
    return gaps


def growth(steps: int) -> str:
    """Describe how much memory grows in some steps of a small loop, after its first minute."""
    names = ["client", "server", "worker"]
    with (
        tempfile.TemporaryDirectory() as state,
        cluster(1, "--state", state, worker_options=WORKER) as (address, processes),
    ):
        side = Side(RUNNER, address, "loop")
        pids = [side.process.pid, *(process.pid for process in processes)]
        begin = time.monotonic()
        while time.monotonic() - begin < 60:
            side.ask(f"run {steps // 20}")
        first = [resident(pid) for pid in pids]
        side.ask(f"run {steps}")
        last = [resident(pid) for pid in pids]
        side.stop()
    grown = [after - before for before, after in zip(first, last, strict=True)]
    each = ", ".join(
        f"{name} {size / 2**20:+.1f} MB" for name, size in zip(names, grown, strict=True)
    )
    return f"{steps} steps of a small loop: {each}"


def resident(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    lines = costs(args.rounds)
    lines += ["", "| loss | median | worst | of |", "| --- | --- | --- | --- |"]
    losses = [
        (
            "a worker of two is killed: until the next step is done (MLP)",
            kills(args.kills, "mlp", 0.6),
        ),
        (
            "the same with 1 GB of tensors, all of which change",
            kills(max(3, args.kills // 5), "large", 6),
        ),
        ("a client's connection is cut (MLP)", cuts(args.kills)),
        ("it is silent for 3 s: time beyond these", cuts(max(3, args.kills // 5), 3)),
        ("it is silent for 15 s: time beyond these", cuts(max(3, args.kills // 6), 15)),
        (
            "the server is killed and restarted: 10 sessions (MLP) on 4 workers, the slowest",
            restarts(max(3, args.kills // 3), 10, 4),
        ),
        (
            "the server and both workers are killed at once, and restarted (MLP)",
            power_cuts(max(3, args.kills // 3), "mlp", 2),
        ),
        (
            "the same with 1 GB of tensors, all of which change",
            power_cuts(max(3, args.kills // 6), "large", 12),
        ),
    ]
    for name, gaps in losses:
        median, worst = statistics.median(gaps), max(gaps)
        lines.append(f"| {name} | {median * 1e3:.0f} ms | {worst * 1e3:.0f} ms | {len(gaps)} |")
        print(lines[-1], flush=True)
    print(grown := growth(args.steps), flush=True)
    lines += ["", f"After a minute, memory grows in {grown}."]
    command = [
        "cargo",
        "run",
        "--release",
        "--quiet",
        "-p",
        "gt-journal",
        "--example",
        "append",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(done.stdout.strip(), flush=True)
    lines += ["", done.stdout.strip()]
    if args.write:
        own = "`python benches/recovery.py --write docs/benchmarks.md`"
        intro = f"Medians of alternating rounds, one server, workers of one thread: {own}."
        write_part(args.write, HEADING, [intro, "", *lines, ""])


main()
