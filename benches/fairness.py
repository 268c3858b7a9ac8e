"""Measure how device time is shared between clients of a server with workers of one thread.

Each client's work is measured relative to its work when it runs alone, which makes shares
shares of device time. Writes the part "Many users" of docs/benchmarks.md.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from programs import Asked
from sides import write_part

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster, run_gt

RUNNER = Path(__file__).parent / "processes" / "fairness.py"
HEADING = "## Many users"


class Client:
    """A process with a session, which keeps a worker busy ("flood") or fetches values ("ask")."""

    def __init__(
        self, address: str, kind: str, name: str, threads: int = 1, key: str = "", *more: str
    ):
        command = [sys.executable, str(RUNNER), address, kind, name, str(threads), *more]
        env = {**os.environ, "GT_KEY": key} if key else None
        self.process = Asked(command, env=env)
        assert self.process.stdout.readline() == "ready\n", name

    def begin(self, seconds: float) -> None:
        """Start a round."""
        self.process.say(f"{seconds}")

    def end(self) -> list[float]:
        """Wait for the end of the round, and return its results."""
        return [float(word) for word in self.process.stdout.readline().split()]

    def stop(self) -> None:
        """End the process."""
        self.process.stop(timeout=60)


@contextmanager
def clients(address: str, *wanted):
    """Run clients, each (kind, work), optionally with threads, a key, and seconds of a chunk."""
    with ExitStack() as stack:
        started = []
        for each in wanted:
            client = Client(address, *each)
            stack.callback(client.stop)
            started.append(client)
        yield started


def together(runners: list[Client], seconds: float) -> list[list[float]]:
    """Run a round of all clients at the same time; return their results."""
    for runner in runners:
        runner.begin(seconds)
    return [runner.end() for runner in runners]


def jain(shares: list[float]) -> float:
    """Return Jain's index: 1 if all are equal, 1/n if one has everything (DEC-TR-301, 1984)."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def shares(runners: list[Client], seconds: float, rounds: int) -> list[float]:
    """Return each client's share of device time: its work relative to its work alone."""
    alone = []
    for runner in runners:
        runner.begin(seconds / 2)
        alone.append(runner.end()[0] / (seconds / 2))
    done = [together(runners, seconds) for _ in range(rounds)]
    medians = [
        statistics.median(counts[index][0] for counts in done) for index in range(len(alone))
    ]
    return [count / seconds / rate for count, rate in zip(medians, alone, strict=True)]


def parts_of_alone(runners: list[Client], seconds: float, rounds: int) -> list[float]:
    """Return each client's work in a second, until its last unit is done, of that alone."""
    rates = [
        statistics.median(throughput(together([runner], seconds)) for _ in range(rounds))
        for runner in runners
    ]
    done = [together(runners, seconds) for _ in range(rounds)]
    return [
        statistics.median(throughput([counts[index]]) for counts in done) / rate
        for index, rate in enumerate(rates)
    ]


def throughput(counts: list[list[float]]) -> float:
    """Return the work of all clients per second, until the last one finished."""
    return sum(done for _, done, _ in counts) / max(taken for _, _, taken in counts)


def high(times: list[float]) -> float:
    """Return the 99th percentile."""
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


def asked_beside(address: str, asking: str, flood: str, count: int, seconds: float):
    """Return fetch times alone and beside floods, and the milliseconds of one flood operation."""
    wanted = [("ask", asking), *[("flood", flood)] * count]
    with clients(address, *wanted) as (asks, *floods):
        asks.begin(seconds)
        alone = asks.end()
        floods[0].begin(seconds)
        one = 1e3 * seconds / max(1, floods[0].end()[0])
        return alone, together([asks, *floods], seconds)[0], one


@contextmanager
def weighted(worker_options):
    """Run a server with shares of 10 for ada and 90 for eve; yield address, key, users' keys."""
    with tempfile.TemporaryDirectory() as folder:
        key, policy = Path(folder, "key"), Path(folder, "policy.yaml")
        key.touch(mode=0o600)
        key.write_text(run_gt("key").stdout)
        policy.write_text("users: {ada: {share: 10}, eve: {share: 90}}\n")

        def of_user(user: str) -> str:
            return run_gt("key", "--user", user, "--of-file", str(key)).stdout.strip()

        options = ("--key-file", str(key))
        given = (1, *options, "--policy", str(policy))
        with cluster(*given, worker_options=(*worker_options, *options)) as (address, _):
            yield address, str(key), of_user


def device_seconds(address: str, key: str | None = None) -> dict[str, float]:
    """Return the device time that each session has used, as the server reports it."""
    host, port = address.split(":")
    options = ("--key-file", key) if key else ()
    report = run_gt("top", "--json", "--host", host, "--port", port, *options)
    sessions = json.loads(report.stdout)["sessions"]
    return {session["name"]: session["device_seconds"] for session in sessions}


def ratio(runners: list[Client], seconds: float, address: str, key: str) -> float:
    """Return the ratio of the second client's device time to the first's while both have work."""
    for runner in runners:
        runner.begin(seconds + 2)
    time.sleep(0.5)
    before = device_seconds(address, key)
    time.sleep(seconds)
    after = device_seconds(address, key)
    for runner in runners:
        runner.end()
    first, second = (after[name] - before[name] for name in sorted(after))
    return second / first


#: The kind, the work and perhaps the threads of each client.
MIXES: dict[str, list[tuple[Any, ...]]] = {
    "512 and 2048 products": [("flood", "p512"), ("flood", "p2048")],
    "128 and 1280 products (1 : 1000)": [("flood", "p128"), ("flood", "p1280")],
    "1 and 8 threads": [("flood", "p256"), ("flood", "p256", 8)],
    "hot and cold": [("flood", "chain"), ("flood", "cold")],
}


#: Sessions on two workers, some of them sharded over both.
SHARDED = {
    "2 clients, each on both workers": [("flood", "sharded")] * 2,
    "4 clients, each on both workers": [("flood", "sharded")] * 4,
    "one on both workers, one on each": [("flood", "sharded"), *[("flood", "p512")] * 2],
}


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page whose part is written")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    one_thread = ("--threads", "1")
    lines = ["| work | result |", "| --- | --- |"]

    def row(work: str, result: str) -> None:
        lines.append(f"| {work} | {result} |")
        print(lines[-1], flush=True)

    with cluster(1, worker_options=one_thread) as (address, _):
        for name, wanted in MIXES.items():
            with clients(address, *wanted) as runners:
                got = shares(runners, given.seconds, given.rounds)
            parts = " and ".join(f"{share:.2f}" for share in got)
            row(f"{name}: Jain's index (shares)", f"{jain(got):.3f} ({parts})")
        for asking, what in [("add", "(a + b).sum().item()"), ("p512", "a 512 product")]:
            for flood, count in [("p1024", 3), ("p2048", 1)]:
                alone, beside, one = asked_beside(address, asking, flood, count, given.seconds)
                what_alone = f"alone {statistics.median(alone):.1f}, {high(alone):.1f}"
                row(
                    f"{what} beside {count} x {flood[1:]} products: median and p99, ms",
                    f"{statistics.median(beside):.1f}, {high(beside):.1f} "
                    f"({what_alone}; one product {one:.0f})",
                )
    with weighted(one_thread) as (address, key, of_user):
        wanted = [("flood", "p256", 1, of_user(user), "0.02") for user in ("ada", "eve")]
        with clients(address, *wanted) as runners:
            ratios = [ratio(runners, given.seconds, address, key) for _ in range(given.rounds)]
        row("weights 10 : 90: device time", f"1 : {statistics.median(ratios):.2f}")
    with cluster(2, worker_options=one_thread) as (address, _):
        with clients(address, *[("flood", "p1024")] * 10) as runners:
            two = throughput(together(runners[:2], given.seconds))
            all_ten = together(runners, given.seconds)
        row(
            "10 clients on 2 workers: Jain's index", f"{jain([done for done, _, _ in all_ten]):.3f}"
        )
        row("their work, over that of 2 clients", f"{throughput(all_ten) / two:.3f}")
        for what, wanted in SHARDED.items():
            with clients(address, *wanted) as runners:
                got = parts_of_alone(runners, given.seconds, given.rounds)
            parts = ", ".join(f"{part:.2f}" for part in got)
            row(f"{what}: work done, of that alone", f"{parts}; {sum(got):.2f}")
    if given.write:
        command = "`.venv/bin/python benches/fairness.py --write docs/benchmarks.md`"
        other = "`.venv/bin/python benches/shares.py --draw shares.svg`"
        text = f"By {command}. {other} draws each client's share, entitlement and use over 10 s."
        write_part(given.write, HEADING, [text, "", *lines, ""])


if __name__ == "__main__":
    main()
