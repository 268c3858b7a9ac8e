"""Measure matrix products of the native engine: `python benches/products.py`.

Small and odd products in a chain beside PyTorch, and a product of 1000 x 1000 while another load
keeps the processors busy: PyTorch in the same process, or a second session. Each side runs in its
own process, in alternating rounds; the tables have medians over the rounds and the fastest rounds.
`--write docs/benchmarks.md` writes its part of the page. `products.py SIDE` is one of the
processes: it reads the name of a work from each line and answers with the microseconds of a
product.
"""

import argparse
import os
import statistics
import sys
import threading
import time
from pathlib import Path

from sides import Side, write_part

HEADING = "## Products"
#: Rows, depth and columns of each product, and the number of products in a chain.
CHAINS = {f"{n} x {n}, in a chain": ((n, n, n), 500) for n in (8, 16, 32, 64, 128)}
ODD = [(17, 33, 7), (1, 1000, 1000), (1000, 1, 1000), (127, 129, 131), (3, 2000, 5)]
CHAINS |= {f"{a} x {b} times {b} x {c}, and back": ((a, b, c), 200) for a, b, c in ODD}
LARGE = "1000 x 1000, in a chain"
CHAINS[LARGE] = ((1000, 1000, 1000), 20)

NAMES = {
    "torch": "PyTorch eager",
    "gt": "GT",
    "half": "GT on half of the processors",
    "torch beside": "GT beside a busy PyTorch in the same process",
    "session beside": "GT beside a busy session in the same process",
}


def play(side: str) -> None:
    """Run as one side."""
    if side == "half":
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, processors[: max(1, len(processors) // 2)])
    if side == "torch":
        import torch as lib

        lib.set_num_threads(len(os.sched_getaffinity(0)))
    else:
        import gt as lib
    if side.endswith("beside"):
        busy, begun = busy_torch if side == "torch beside" else busy_session, threading.Event()
        beside = threading.Thread(target=busy, args=(begun, ended := threading.Event()))
        beside.start()
        begun.wait(timeout=60)

    def run(rows: int, depth: int, columns: int, count: int) -> float:
        """Return the seconds of a product in a chain."""
        made = lib.randn(rows, depth)
        there, back = lib.randn(depth, columns) * depth**-0.5, lib.randn(columns, depth)
        back = back * columns**-0.5
        (made @ there @ back).sum().item()
        start = time.perf_counter()
        for _ in range(count // 2):
            made = made @ there @ back
        made.sum().item()
        return (time.perf_counter() - start) / count

    print("ready", flush=True)
    for line in sys.stdin:
        lengths, count = CHAINS[line.strip()]
        times = [run(*lengths, count) * 1e6 for _ in range(7)]
        print(statistics.median(times[2:]), min(times), flush=True)
    if side.endswith("beside"):
        ended.set()
        beside.join()


def busy_torch(begun: threading.Event, ended: threading.Event) -> None:
    """Multiply with PyTorch until `ended` is set."""
    import torch

    left, right = torch.randn(1000, 1000), torch.randn(1000, 1000)
    while not ended.is_set():
        torch.mm(left, right)
        begun.set()


def busy_session(begun: threading.Event, ended: threading.Event) -> None:
    """Multiply in a second session until `ended` is set."""
    import gt

    with gt.Session():
        left, made = gt.randn(1000, 1000) * 0.03, gt.randn(1000, 1000)
        while not ended.is_set():
            for _ in range(10):
                made = left @ made
            made[0, 0].item()
            begun.set()


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", type=Path, help="the page to write")
    args = parser.parse_args()
    small = [work for work in CHAINS if work != LARGE]
    lines = [
        "| product | PyTorch | GT | of PyTorch | fastest |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for work, found in measure(["torch", "gt"], small, args.rounds).items():
        (base, quick), (median, fastest) = found["torch"], found["gt"]
        lines.append(
            f"| {work} | {base:.2f} us | {median:.2f} us | **{median / base:.2f} x** | "
            f"{fastest / quick:.2f} x |"
        )
    lines += [
        "",
        f"| {LARGE} | a product | of half the processors | fastest |",
        "| --- | ---: | ---: | ---: |",
    ]
    found = measure(list(NAMES), [LARGE], args.rounds)[LARGE]
    base, quick = found["half"]
    for side, (median, fastest) in found.items():
        lines.append(
            f"| {NAMES[side]} | {median / 1000:.2f} ms | **{median / base:.2f} x** | "
            f"{fastest / quick:.2f} x |"
        )
    print("\n".join(lines))
    if args.write:
        made = (
            f"Made by `python benches/products.py --write docs/benchmarks.md`: {args.rounds} "
            f"alternating rounds, medians; {os.cpu_count()} cores, float32."
        )
        write_part(args.write, HEADING, [made, "", *lines])


def measure(sides: list[str], works: list[str], rounds: int) -> dict[str, dict[str, tuple]]:
    """Return the median and the fastest microseconds of a product, by work and side."""
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for side in sides:
            process = Side(__file__, side)
            for work in works:
                median, fastest = map(float, process.ask(work).split())
                taken.setdefault((work, side), []).append((median, fastest))
            process.stop()
    return {
        work: {
            side: (
                statistics.median(median for median, _ in taken[work, side]),
                min(fastest for _, fastest in taken[work, side]),
            )
            for side in sides
        }
        for work in works
    }


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in NAMES:
        play(sys.argv[1])
    else:
        main()
