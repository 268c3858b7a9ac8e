"""How long the calls take that publish, read and attach."""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster

#: The tensors that are read by one call, and those that a session keeps.
READ, KEPT = 300, 10_000
#: The tensors of what is published.
PARTS = 16


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def publishing(address: str, gigabytes: float) -> tuple[float, float]:
    """Return the seconds of gt.publish, and until new values can be read."""
    rows = max(1, round(gigabytes * 1e9 / 4 / PARTS / 1000))
    with gt.Session(address):
        # Values of which no worker has a copy yet.
        values = [gt.rand(rows, 1000) for _ in range(PARTS)]
        values[-1][-1, -1].item()
        start = time.perf_counter()
        name = gt.publish("values", values)
        called = time.perf_counter() - start
        # It waits until the values can be read.
        gt.shared(name)
        visible = time.perf_counter() - start
        gt.unpublish(name)
    return called, visible


def reading(address: str) -> float:
    """Return the seconds of gt.shared of many tensors in a new session."""
    with gt.Session(address):
        return seconds(lambda: gt.shared("many"))


def attaching(address: str) -> tuple[float, float]:
    """Return the seconds of gt.attach to a session that keeps many tensors, and of gt.kept."""
    gt.attach("many", address=address)
    gt.detach("many")
    attached = seconds(lambda: gt.attach("many", address=address))
    read = seconds(lambda: gt.kept("all"))
    gt.detach("many")
    return attached, read


def calls(gigabytes: float, rounds: int) -> list[tuple[str, str, str]]:
    """Measure each call on a server with two workers; return rows of the table."""
    with cluster(2) as (address, _):
        with gt.Session(address):
            gt.shared(gt.publish("many", [gt.full((8,), float(n)) for n in range(READ)]))
        gt.attach("many", or_create=True, address=address)
        gt.keep("all", [gt.full((8,), float(number)) for number in range(KEPT)])
        gt.detach("many")
        published = [publishing(address, gigabytes) for _ in range(rounds)]
        shared = statistics.median(reading(address) for _ in range(rounds))
        kept = [attaching(address) for _ in range(rounds)]
        gt.disconnect()
    called, visible = (statistics.median(column) for column in zip(*published, strict=True))
    attached, read = (statistics.median(column) for column in zip(*kept, strict=True))
    per = visible / gigabytes
    return [
        (f"gt.publish of {gigabytes:g} GB: the call", f"{called * 1e3:.1f} ms", "5 ms"),
        (
            "until it can be read, with a copy on the other worker, for each GB",
            f"{per:.2f} s",
            "2 s",
        ),
        (f"gt.shared of {READ} tensors", f"{shared * 1e3:.1f} ms", "20 ms"),
        (
            f"gt.attach to a session that keeps {KEPT:,} tensors, and gt.kept of them",
            f"{attached:.3f} s, {read:.3f} s",
            "0.5 s",
        ),
    ]
