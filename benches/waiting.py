"""Measure the shares of clients that wait for each answer, on a server with workers of one thread.

They ask again only after a moment, in which a worker could begin a long operation of another. Each
client's work is measured relative to its work when it runs alone. Writes the part "Who waits for
each answer" of docs/benchmarks.md.
"""

import argparse
import statistics
import time
from pathlib import Path

from fairness import (
    Client,
    clients,
    device_seconds,
    high,
    jain,
    ratio,
    together,
    weighted,
)
from processes import cluster
from sides import write_part

HEADING = "## Who waits for each answer"
ONE_THREAD = ("--threads", "1")

#: Pairs of clients that wait for each product.
PAIRS = [("p2048", "p512"), ("p2048", "p1024"), ("p1024", "p512")]


def alone_and_together(
    address: str, runners: list[Client], seconds: float, rounds: int
) -> tuple[list[float], list[float]]:
    """Return each client's device time, and its work relative to its work alone: medians."""
    alone = medians(
        [[together([runner], seconds)[0][0] / seconds for runner in runners] for _ in range(rounds)]
    )
    times, works = [], []
    for _ in range(rounds):
        before = device_seconds(address)
        counts = together(runners, seconds)
        after = device_seconds(address)
        # Numbers of sessions rise in the order in which clients are started.
        names = sorted(after, key=lambda name: int(name.split("#")[-1]))[-len(runners) :]
        times.append([after[name] - before[name] for name in names])
        works.append([each[0] / seconds / rate for each, rate in zip(counts, alone, strict=True)])
    return medians(times), medians(works)


def medians(rounds: list[list[float]]) -> list[float]:
    """Return the median of each column."""
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def bursts(address: str, seconds: float) -> tuple[list[float], list[float]]:
    """Return the times of a notebook's bursts alone, and beside three floods."""
    with clients(address, ("bursts", "p256"), *[("flood", "p512")] * 3) as (notebook, *floods):
        together([notebook, *floods], 3)  # the first runs of programs are compiled and checked
        notebook.begin(seconds)
        alone = notebook.end()
        for flood in floods:
            flood.begin(seconds + 2)
        time.sleep(2)  # the notebook asks in the middle of the floods
        notebook.begin(seconds)
        beside = notebook.end()
        for flood in floods:
            flood.end()
        return alone, beside


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page whose part is written")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    lines = ["| work | result | goal |", "| --- | --- | --- |"]

    def row(work: str, result: str, goal: str) -> None:
        lines.append(f"| {work} | {result} | {goal} |")
        print(lines[-1], flush=True)

    with cluster(1, worker_options=ONE_THREAD) as (address, _):
        for pair in PAIRS:
            with clients(address, *(("loop", name) for name in pair)) as runners:
                times, works = alone_and_together(address, runners, given.seconds, given.rounds)
            names = " and ".join(name[1:] for name in pair)
            parts = " and ".join(f"{work:.2f}" for work in works)
            result = f"{jain(times):.3f}; {sum(works):.2f} ({parts})"
            row(
                f"{names} products: Jain's index of device time; work, of alone",
                result,
                "0.97; 0.93",
            )
        with clients(address, ("loop", "tokens"), ("flood", "training")) as runners:
            times, works = alone_and_together(address, runners, given.seconds, given.rounds)
        device = " and ".join(f"{time / given.seconds:.2f}" for time in times)
        parts = "; ".join(f"{work:.2f}" for work in works) + f" (of device time {device})"
        row("tokens of a small Qwen3, beside its training: work, of alone", parts, "0.45; 0.45")
        alone, beside = bursts(address, 5 * given.seconds)
        usual = statistics.median(alone)
        median, highest = statistics.median(beside) / usual, high(beside) / usual
        result = f"{median:.2f}; {highest:.2f} (alone {usual:.1f} ms)"
        row("bursts of 20 ms, beside three floods: median; p99, of alone", result, "1.2; 2")
        with clients(address, *[("loop", "p256")] * 8) as runners:
            two = sum(each[0] for each in together(runners[:2], given.seconds))
            eight = [each[0] for each in together(runners, given.seconds)]
        result = f"{sum(eight) / two:.2f}; {jain(eight):.3f}"
        row("8 clients: work, of that of 2; Jain's index", result, "1")
    with weighted(ONE_THREAD) as (address, key, of_user):
        wanted = [("loop", "p1024", 1, of_user(user)) for user in ("ada", "eve")]
        with clients(address, *wanted) as runners:
            ratios = [ratio(runners, given.seconds, address, key) for _ in range(given.rounds)]
        row(
            "1024 products by weights 10 : 90: device time",
            f"1 : {statistics.median(ratios):.2f}",
            "1 : 9",
        )
    if given.write:
        command = "`.venv/bin/python benches/waiting.py --write docs/benchmarks.md`"
        write_part(given.write, HEADING, [f"By {command}.", "", *lines, ""])


if __name__ == "__main__":
    main()
