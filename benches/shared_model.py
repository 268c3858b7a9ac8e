"""Measure ten users of one published model: memory, work, waits, and the cost of the calls.

Server, worker of one thread, publisher and users are separate processes. Each user has another kind
of work, those of examples/users. Writes the part "A shared model" of docs/benchmarks.md. `--check`
compares the users' numbers, bit for bit, while publisher, worker and server are killed.

usage: shared_model.py [--size GIGABYTES] [--rounds N] [--seconds S] [--write PAGE] [--check]
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import gt
from shared_calls import calls
from shared_check import check
from shared_users import USERS, User, running
from sides import write_part

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster

HEADING = "## A shared model"
ONE_THREAD = ("--threads", "1")


class Memory(NamedTuple):
    """The bytes on the worker, as the server reports them, and its resident memory."""

    tensors: int
    snapshots: int
    resident: int

    @property
    def all(self) -> int:
        """Return the bytes of all tensors and snapshots; publications are among the latter."""
        return self.tensors + self.snapshots


def memory(pid: int) -> Memory:
    """Return the memory of the worker, once it has nothing to do."""
    while True:
        time.sleep(1)
        (worker,) = gt.status().workers
        if worker["bytes"] is not None and worker["snapshot_bytes"] is not None:
            break
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Memory(worker["bytes"], worker["snapshot_bytes"], 4096 * pages)


def high(times: list[float]) -> float:
    """Return the 99th percentile."""
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


def together(users: list[User], seconds: float) -> list[list[float]]:
    """Run a round of all users at the same time; return the steps and seconds of each."""
    for user in users:
        user.say(f"steps {seconds}")
    return [user.answer() for user in users]


def work_of_alone(users: list[User], seconds: float) -> list[float]:
    """Return the part of its work alone that each user does beside the others.

    All steps count, and the seconds until the last user is done: then the parts add up to the
    seconds of work alone that are done in a second.
    """
    rates = []
    for user in users:
        ((count, taken),) = together([user], seconds / 2)
        rates.append(count / taken)
    done = together(users, seconds)
    longest = max(taken for _, taken in done)
    return [count / rate / longest for (count, _), rate in zip(done, rates, strict=True)]


def beside(small: User, large: list[User], seconds: float) -> tuple[list[float], list[float]]:
    """Return the milliseconds of small requests alone, and beside large users."""
    alone = small.ask(f"ask {seconds / 2}")
    for user in large:
        user.say(f"steps {seconds + 1}")
    # The first request of all who begin at the same moment waits for the others.
    time.sleep(0.5)
    found = small.ask(f"ask {seconds}")
    for user in large:
        user.answer()
    return alone, found


def megabytes(count: float) -> str:
    """Return a number of bytes as a text."""
    return f"{count / 1e6:,.1f} MB"


def shared_work(gigabytes: float, rounds: int, seconds: float) -> list[tuple[str, str, str]]:
    """Measure the users together: memory, work and waits. Return rows of the table."""
    with cluster(1, worker_options=ONE_THREAD) as (address, processes):
        pid = processes[1].pid
        User(address, "publisher", gigabytes).kill()
        with gt.Session(address, name="watcher"):
            published = memory(pid)
            with running(address, USERS, gigabytes) as users:
                (model,) = gt.published()
                have_read = memory(pid)
                parts = [work_of_alone(users, seconds) for _ in range(rounds)]
                have_worked = memory(pid)
                with running(address, ["small"], gigabytes) as (small,):
                    (product,) = small.ask("product")
                    asked = [beside(small, users[:9], seconds) for _ in range(rounds)]
    assert model.readers == len(USERS), model
    return [
        memory_row(model.bytes, published, have_read, have_worked),
        work_row(parts),
        wait_row(asked, product),
    ]


def memory_row(model: int, published: Memory, read: Memory, worked: Memory) -> tuple[str, str, str]:
    """Return the row about the bytes on the worker."""
    snapshots = worked.snapshots - published.snapshots
    return (
        "bytes on the worker, of the model's, when ten users have read it, and after their work",
        f"{read.all / model:.3f} x, {worked.all / model:.3f} x (the model {megabytes(model)}; "
        f"tensors of users {megabytes(worked.tensors)}, snapshots of these "
        f"{megabytes(snapshots)}; resident {megabytes(published.resident)} before them, "
        f"{megabytes(worked.resident)} after)",
        "1.1 x, and what is theirs",
    )


def work_row(parts: list[list[float]]) -> tuple[str, str, str]:
    """Return the row about the work of the users, relative to their work alone."""
    total = statistics.median(map(sum, parts))
    each = [statistics.median(column) for column in zip(*parts, strict=True)]
    return (
        "work of ten users together, of that of one alone",
        f"{total:.2f} x (each {min(each):.3f} to {max(each):.3f})",
        "0.95 x",
    )


def wait_row(asked: list[tuple[list[float], list[float]]], product: float) -> tuple[str, str, str]:
    """Return the row about requests of a small user, alone and beside others."""
    columns = list(zip(*asked, strict=True))
    alone, found = (statistics.median(map(high, column)) for column in columns)
    middle_alone, middle = (statistics.median(map(statistics.median, column)) for column in columns)
    return (
        "a small user's request beside nine: p99, and median",
        f"{found:.2f} ms, {middle:.2f} ms (alone {alone:.2f}, {middle_alone:.2f}; the largest "
        f"product of a step {product:.2f})",
        f"{2 * alone + product:.2f} ms: 2 x alone, and a product",
    )


def main() -> int:
    """Measure and print, and write the page if asked to; or check. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=float, default=0.01, help="gigabytes of the model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of a round of all users")
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--check", action="store_true", help="compare bits while processes die")
    parser.add_argument("--steps", type=int, default=50, help="of each part of the check")
    given = parser.parse_args()
    if given.check:
        others = check(given.size, given.steps)
        print(f"OTHER BITS: {', '.join(others)}" if others else "all have the same bits")
        return int(bool(others))
    lines = ["| measurement | result | goal |", "| --- | --- | --- |"]
    for row in shared_work(given.size, given.rounds, given.seconds):
        lines.append(f"| {' | '.join(row)} |")
        print(lines[-1], flush=True)
    for row in calls(given.size, given.rounds):
        lines.append(f"| {' | '.join(row)} |")
        print(lines[-1], flush=True)
    if given.write:
        options = f"--size {given.size:g} --seconds {given.seconds:g} --write {given.write}"
        intro = (
            f"A model of {given.size:g} GB, medians of {given.rounds} rounds. "
            f"Made by `python benches/shared_model.py {options}`."
        )
        write_part(given.write, HEADING, [intro, "", *lines, ""])
    return 0


if __name__ == "__main__":
    sys.exit(main())
