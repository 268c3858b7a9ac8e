"""Measure `x[mask]` of a million floats, half of them selected, beside PyTorch eager.

With a new mask each time (`x[x > 0]`), GT has to count its true values and wait for the number;
with the same mask, GT counts only the first time. PyTorch counts each time. PyTorch is in the table
twice: its ratio to itself shows the noise.

GT runs embedded, on a server with one worker, and sharded over the two workers of a server, which
have one thread each. Rounds alternate between the sides; the table has medians.

usage: counted.py [ROUNDS]
"""

import json
import statistics
import sys
import time

from sharding import cluster
from sides import Side

COUNT = 1_000_000
THREADS = 2


def play(side: str) -> None:
    """Run as one side: answer each line with the median time of one use, in microseconds."""
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
    ends = {"new": values[values > 0][-1], "same": values[chosen][-1]}

    def use(name):
        # Fetching the last value waits for the whole computation.
        assert x[x > 0 if name == "new" else mask][-1].item() == ends[name]

    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(15):
            start = time.perf_counter()
            use(line.strip())
            times.append(time.perf_counter() - start)
        print(json.dumps(statistics.median(times) * 1e6), flush=True)


def _side(name: str) -> Side:
    return Side(__file__, "--play", name)


def measure(rounds: int) -> None:
    """Run all rounds and print the table."""
    one, processes = cluster(1)
    two, more = cluster(2)
    sides = {
        "PyTorch eager": _side("torch"),
        "PyTorch eager, again": _side("torch"),
        "GT, embedded": _side("embedded"),
        "GT over tcp, one worker": _side(one),
        "GT over tcp, two workers, sharded": _side(f"{two} cut"),
    }
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds + 1):
        for name in ("new", "same"):
            for title, side in sides.items():
                times.setdefault((title, name), []).append(json.loads(side.ask(name)))
    for side in sides.values():
        side.stop()
    for process in processes + more:
        process.terminate()
        process.wait(timeout=20)
    # The first round warms up.
    medians = {work: statistics.median(all_of[1:]) for work, all_of in times.items()}
    base = [medians["PyTorch eager", name] for name in ("new", "same")]
    print("| 1,000,000 floats | `x[x > 0]`, us | x PyTorch | `x[mask]`, us | x PyTorch |")
    print("| --- | --- | --- | --- | --- |")
    for title in sides:
        new, same = medians[title, "new"], medians[title, "same"]
        ratios = new / base[0], same / base[1]
        print(f"| {title} | {new:,.0f} | {ratios[0]:.2f} | {same:,.0f} | {ratios[1]:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        play(sys.argv[2])
    else:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
