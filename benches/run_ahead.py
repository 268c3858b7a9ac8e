"""Compare two limits of run-ahead: a time, and a number of instructions.

Writes the part "Run-ahead" of docs/benchmarks.md. A program issues products for three seconds, as a
loop that Ctrl-C interrupts, and then fetches the result of another operation; then it waits for the
products.

usage: run_ahead.py [--rounds N] [--write PAGE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from sides import write_part

HEADING = "## Run-ahead"

#: The value of `GT_RUN_AHEAD` of each side.
SIDES = {"0.4 s": "0.4", "16,384 instructions alone": "100000"}
WORKS = [
    "products of 600 x 600 issued in 3 s",
    "the next question after them, s",
    "300 such products, s",
    "100,000 additions, s",
]


def play() -> None:
    """Run as one side: print a number for each work."""
    import gt

    x, w = gt.randn(600, 600), gt.randn(600, 600) / 600**0.5
    for _ in range(50):
        x = x @ w
    x.sum().item()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < 3:
        x, count = x @ w, count + 1
    start = time.perf_counter()
    gt.ones(3).sum().item()
    asked = time.perf_counter() - start
    x.sum().item()
    start = time.perf_counter()
    for _ in range(300):
        x = x @ w
    x.sum().item()
    products = time.perf_counter() - start
    y, start = gt.ones(8), time.perf_counter()
    for _ in range(100_000):
        y = y + 1
    y.sum().item()
    print(count, asked, products, time.perf_counter() - start)


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="the page to write")
    args = parser.parse_args()
    found: dict[str, list[list[float]]] = {side: [] for side in SIDES}
    for _ in range(args.rounds):
        for side, limit in SIDES.items():
            done = subprocess.run(
                [sys.executable, __file__, "--play"],
                env={**os.environ, "GT_RUN_AHEAD": limit},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            found[side].append([float(number) for number in done.stdout.split()])
    lines = [
        "Made by `python benches/run_ahead.py --write docs/benchmarks.md`: embedded, "
        f"{args.rounds} alternating rounds, medians.",
        "",
        f"| work | {' | '.join(SIDES)} |",
        "| --- | ---: | ---: |",
    ]
    for index, work in enumerate(WORKS):
        medians = [statistics.median(one[index] for one in found[side]) for side in SIDES]
        cells = [f"{median:,.0f}" if index == 0 else f"{median:.3f}" for median in medians]
        lines.append(f"| {work} | {' | '.join(cells)} |")
    print("\n".join(lines))
    if args.write:
        write_part(args.write, HEADING, lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--play"]:
        play()
    else:
        main()
