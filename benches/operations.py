"""Measure operations beside PyTorch eager: `python benches/operations.py`.

Each side runs in its own process, in alternating rounds; the table has medians over the rounds, and
the fastest uses, which are more reliable on a machine with other load. `python operations.py SIDE`
is one of these processes: it reads the name of a work from each line and answers with the
milliseconds of one use: the median and the fastest.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable

from sides import Side
from workloads.operations import THREADS, works

#: What is shown of the rounds: their median, and of their shortest times the shortest.
MIDDLE_AND_LEAST: tuple[Callable[[Iterable[float]], float], ...] = (statistics.median, min)


def play(side: str) -> None:
    """Run as one side: a round for each line of input."""
    found = works(side)
    print("ready", flush=True)
    for line in sys.stdin:
        run, times = found[line.strip()], []
        for _ in range(7):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(statistics.median(times[2:]), min(times), flush=True)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="works whose names contain this")
    args = parser.parse_args()
    environment = {"OMP_NUM_THREADS": str(THREADS)}
    sides = {side: Side(__file__, side, environment=environment) for side in ("torch", "gt")}
    print("| work | PyTorch | GT | ratio | fastest: PyTorch | GT | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    names = [name for name in works("torch") if args.only in name]
    for name in names:
        times: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
        for _ in range(args.rounds):
            for side, process in sides.items():
                median, fastest = map(float, process.ask(name).split())
                times[side].append((median, fastest))
        cells = [name]
        for number, over in enumerate(MIDDLE_AND_LEAST):
            torch, gt = (over(pair[number] for pair in times[side]) for side in ("torch", "gt"))
            cells += [f"{torch:.2f} ms", f"{gt:.2f} ms", f"{gt / torch:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    for process in sides.values():
        process.stop()


if __name__ == "__main__":
    if sys.argv[1:2] in (["torch"], ["gt"]):
        play(sys.argv[1])
    else:
        main()
