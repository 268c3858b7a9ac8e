"""Measure `x[mask]` of a million floats, half of them taken, beside PyTorch eager.

GT runs embedded, on a server with one worker, and cut over a server's two workers, of one thread
each. Rounds alternate between the sides; the table has medians.

usage: counted.py [ROUNDS]
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from sharding import cluster

COUNT = 1_000_000
THREADS = 2


def play(side: str) -> None:
    """Be one side: answer each line with the median time of one use, in microseconds."""
    import numpy as np

    if side == "torch":
        import torch as lib

        lib.set_num_threads(THREADS)
    else:
        import gt as lib

        if side != "embedded":
            lib.connect(side.removesuffix(" cut"))
        if side.endswith(" cut"):
            lib.register_config("cut", lib.SignalConfig(lib.ShardConfig(axis=0)))
    random = np.random.default_rng(0)
    values = random.standard_normal(COUNT).astype("float32")
    chosen = random.random(COUNT) < 0.5

    def tensors():
        return lib.from_numpy(values), lib.from_numpy(chosen)

    if side.endswith(" cut"):
        with lib.signal.context("cut"):
            x, mask = (tensor.clone() for tensor in tensors())
    else:
        x, mask = tensors()
    last = values[chosen][-1]

    def use():
        # The last value is fetched, so that all has been done.
        assert x[mask][-1].item() == last

    print("ready", flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(15):
            start = time.perf_counter()
            use()
            times.append(time.perf_counter() - start)
        print(json.dumps(statistics.median(times) * 1e6), flush=True)


class Player:
    """A side in a process of its own."""

    def __init__(self, side: str):
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__), "--play", side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline().strip() == "ready", f"{side} did not start"
        self.times: list[float] = []

    def run(self) -> None:
        """Run one round, once the threads of the side before have stopped to look for work."""
        time.sleep(0.25)
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        self.times.append(json.loads(self.process.stdout.readline()))

    def stop(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait(timeout=30)


def measure(rounds: int) -> None:
    """Run all rounds and print the table."""
    one, processes = cluster(1)
    two, more = cluster(2)
    sides = {
        "PyTorch eager": Player("torch"),
        "GT, embedded": Player("embedded"),
        "GT over tcp, one worker": Player(one),
        "GT over tcp, two workers, cut": Player(f"{two} cut"),
    }
    for _ in range(rounds + 1):
        for player in sides.values():
            player.run()
    for player in sides.values():
        player.stop()
    for process in processes + more:
        process.terminate()
        process.wait(timeout=20)
    base = statistics.median(sides["PyTorch eager"].times[1:])
    print("| `x[mask]`, 1,000,000 floats | us | x PyTorch |\n| --- | --- | --- |")
    for title, player in sides.items():
        median = statistics.median(player.times[1:])
        print(f"| {title} | {median:,.0f} | {median / base:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        play(sys.argv[2])
    else:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
