"""Measure how long the drain of a worker takes, and when its session has the next value.

Server, two workers of one thread and a client that holds tensors are separate processes. In each
round a worker is drained, and another one takes its place. The tensors are as old as the session's
last snapshot, or have just been computed, so that no other worker has them. `--kill` compares with
workers that are killed.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import gt
from gt import _gt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster
from training import start_worker

WORKER = ("--threads", "1")
#: The number of tensors that hold the bytes together.
TENSORS = 16


def fill(megabytes: int, first: int) -> list[gt.Tensor]:
    """Return tensors that hold these bytes together, with the values from `first` on."""
    rows = megabytes * 1_000_000 // TENSORS // 4 // 1000
    return [gt.full((rows, 1000), float(first + number)) for number in range(TENSORS)]


def check(tensors: list[gt.Tensor], first: int) -> None:
    """Fetch a value of each tensor, and check it."""
    for number, tensor in enumerate(tensors):
        assert tensor[-1, -1].item() == first + number


def rounds(megabytes: int, count: int, kind: str) -> list[tuple[float, float]]:
    """Return the times of each round: until the worker has ended, and until the next value."""
    times = []
    with cluster(2, worker_options=WORKER) as (address, processes):
        workers = {"w0": processes[1], "w1": processes[2]}
        with gt.Session(address):
            tensors, first = fill(megabytes, 0), 0
            for number in range(count):
                # A snapshot is taken after a quarter of a second of work.
                until = time.monotonic() + 2
                while time.monotonic() < until:
                    (tensors[0] + 1).sum().item()
                if kind == "new":
                    first = TENSORS * number
                    tensors = fill(megabytes, first)
                    check(tensors, first)
                name = gt.status().sessions[0]["slots"][0]
                worker = workers.pop(name)
                processes.remove(worker)
                begin = time.monotonic()
                if kind == "killed":
                    worker.kill()
                else:
                    _gt.drain_worker(name, 60.0, address=address)
                worker.wait(timeout=60)
                ended = time.monotonic() - begin
                check(tensors, first)
                times.append((ended, time.monotonic() - begin))
                worker.communicate()
                new = f"new{number}"
                workers[new] = start_worker(address, new, *WORKER)
                processes.append(workers[new])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--kill", action="store_true", help="compare with workers that are killed")
    args = parser.parse_args()
    kinds = {"old": "with old tensors is drained", "new": "with new tensors is drained"}
    if args.kill:
        kinds["killed"] = "is killed"
    for kind, text in kinds.items():
        times = rounds(args.megabytes, args.rounds, kind)
        ended, value = (statistics.median(column) for column in zip(*times, strict=True))
        longest = max(value for _, value in times)
        print(
            f"a worker with {args.megabytes} MB {text}: it has ended after {ended:.2f} s, the "
            f"next value is there after {value:.2f} s (medians of {args.rounds}; at "
            f"most {longest:.2f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
