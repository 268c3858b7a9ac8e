"""Measure convolution, pooling and batch normalization beside PyTorch eager.

Each side runs in a process of its own, in rounds that alternate; the table has medians over the
rounds, and the fastest uses, which say more where others use the machine. `python convolution.py
SIDE` is one of these processes: it reads the name of a work a line and answers with the
milliseconds that one use of it takes: the median and the fastest.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

THREADS = 2
SHAPE = (8, 64, 56, 56)


class Player:
    """A benchmark process that runs rounds on demand."""

    def __init__(self, side: str):
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).resolve(), side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(THREADS)},
        )
        assert self.process.stdout.readline().strip() == "ready", f"{side} did not start"

    def run(self, name: str) -> tuple[float, float]:
        """Run one round, once the threads of the side before have stopped to look for work."""
        time.sleep(0.25)
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        median, fastest = map(float, self.process.stdout.readline().split())
        return median, fastest

    def stop(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait(timeout=20)


def works(side: str) -> dict:
    """Give what is measured, by name: functions that end when all is computed."""
    import numpy as np

    if side == "torch":
        import torch as lib

        lib.set_num_threads(THREADS)
    else:
        import gt as lib

    functional, random = lib.nn.functional, np.random.default_rng(0)

    def tensor(*shape):
        return lib.from_numpy(random.standard_normal(shape).astype("float32"))

    images, weight, seed = tensor(*SHAPE), tensor(64, 64, 3, 3), tensor(*SHAPE)
    each, strided = tensor(64, 1, 3, 3), tensor(64, 64, 3, 3)
    scale, shift = tensor(64), tensor(64)

    def forward(function, *operands):
        def run():
            with lib.no_grad():
                return [function(*operands)]

        return run

    def both(function, *operands):
        leaves = [operand.detach().requires_grad_() for operand in operands]

        def run():
            for leaf in leaves:
                leaf.grad = None
            result = function(*leaves)
            result.backward(seed[:, :, : result.shape[2], : result.shape[3]])
            return [result, *(leaf.grad for leaf in leaves)]

        return run

    def conv(x, w):
        return functional.conv2d(x, w, padding=1)

    cases = {
        "conv2d 3 x 3": (conv, images, weight),
        "conv2d 3 x 3, stride 2": (
            lambda x, w: functional.conv2d(x, w, stride=2, padding=1),
            images,
            strided,
        ),
        "conv2d 3 x 3, depthwise": (
            lambda x, w: functional.conv2d(x, w, padding=1, groups=64),
            images,
            each,
        ),
        "max_pool2d 2": (lambda x: functional.max_pool2d(x, 2), images),
        "max_pool2d 3, stride 2": (lambda x: functional.max_pool2d(x, 3, 2, 1), images),
        "avg_pool2d 2": (lambda x: functional.avg_pool2d(x, 2), images),
        "batch_norm": (
            lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
            images,
            scale,
            shift,
        ),
    }
    found = {}
    for name, case in cases.items():
        found[f"{name}, forward"] = forward(*case)
        found[f"{name}, forward and backward"] = both(*case)
    if side != "torch":
        # What is not asked for may not be computed yet: the last element of each result is.
        found = {name: _finished(run) for name, run in found.items()}
    return found


def _finished(run):
    def finish():
        for result in run():
            result.flatten()[-1].item()

    return finish


def play(side: str) -> None:
    """Run rounds as they are asked for."""
    found = works(side)
    print("ready", flush=True)
    for line in sys.stdin:
        run, times = found[line.strip()], []
        for _ in range(9):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(statistics.median(times[2:]), min(times), flush=True)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="works whose names have this in them")
    args = parser.parse_args()
    players = {side: Player(side) for side in ("torch", "gt")}
    print(f"{SHAPE}, float32, {THREADS} threads each, medians of {args.rounds} rounds\n")
    print("| work | PyTorch | GT | ratio | fastest: PyTorch | GT | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    names = [name for name in works("torch") if args.only in name]
    for name in names:
        times: dict[str, list[tuple[float, float]]] = {side: [] for side in players}
        for _ in range(args.rounds):
            for side, player in players.items():
                times[side].append(player.run(name))
        cells = [name]
        for number, over in enumerate((statistics.median, min)):
            torch, gt = (over(pair[number] for pair in times[side]) for side in ("torch", "gt"))
            cells += [f"{torch:.2f} ms", f"{gt:.2f} ms", f"{gt / torch:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    for player in players.values():
        player.stop()


if __name__ == "__main__":
    if sys.argv[1:2] in (["torch"], ["gt"]):
        play(sys.argv[1])
    else:
        main()
