"""Measure a cluster of many workers on one machine: its start, its first exchange, steps, idling.

Each worker is a process of one thread. A model of three layers is trained data-parallel: its
parameters are replicated on all workers, the batch is sharded, gradients are combined.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import gt
import gt.cluster
from gt import ShardConfig, SignalConfig

#: The seconds for which the cluster is idle.
IDLE = 20.0


def processes() -> list[str]:
    """Return the IDs of the processes of clusters on this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if b"worker/start.py" in line or b"gt.server" in line:
            found.append(path.parent.name)
    return found


def processor_time() -> float:
    """Return the seconds of processor time that the cluster's processes have taken."""
    ticks = 0
    for process in processes():
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Trainer:
    """A data-parallel model of three layers."""

    def __init__(self, workers: int):
        """Make the model and its data on all workers."""
        gt.manual_seed(0)
        gt.register_config("rows", SignalConfig(ShardConfig(axis=0)))
        gt.register_config("copies", SignalConfig(ShardConfig(replicated=True)))
        with gt.signal.context("copies"):
            sizes = [(64, 128), (128, 128), (128, 10)]
            self.weights = [(gt.randn(*size) * 0.1).requires_grad_() for size in sizes]
        with gt.signal.context("rows"):
            self.x, self.y = gt.randn(16 * workers, 64), gt.randn(16 * workers, 10)
        self.optimizer = gt.optim.SGD(self.weights, lr=0.01)

    def step(self) -> float:
        """Do one step; return the loss."""
        first, second, last = self.weights
        with gt.signal.context("rows"):
            hidden = ((self.x @ first).relu() @ second).relu()
            loss = ((hidden @ last - self.y) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def timed(work) -> tuple[float, float, float]:
    """Return the result of a function, its seconds, and its processor time."""
    start, before = time.perf_counter(), processor_time()
    result = work()
    return result, time.perf_counter() - start, processor_time() - before


def main() -> None:
    """Print one row for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 12, 36, 72])
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    print("| workers | start | first step | a step, median | descriptors | idle | loss |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for workers in args.workers:
        cluster = gt.cluster.Local(workers, threads=1, memory="100MB")
        start = time.perf_counter()
        with cluster:
            started, used = time.perf_counter() - start, processor_time()
            gt.connect(cluster.address)
            trainer = Trainer(workers)
            _, first, first_used = timed(trainer.step)
            rows = [timed(trainer.step) for _ in range(args.steps)]
            step, step_used = (statistics.median(row[at] for row in rows) for at in (1, 2))
            most = max(len(os.listdir(f"/proc/{process}/fd")) for process in processes())
            time.sleep(2)
            _, waited, idle = timed(lambda: time.sleep(IDLE))
            gt.disconnect()
        print(
            f"| {workers} | {started:.1f} s, {used:.1f} s of processor time "
            f"| {first:.2f} s, {first_used:.1f} s | {1000 * step:.0f} ms, "
            f"{1000 * step_used:.0f} ms | {most} | {100 * idle / waited:.1f} % of a core "
            f"| {rows[-1][0]!r} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
