"""A server and workers with state folders, which are killed together and restarted."""

import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from processes import cluster
from training import start_server, start_worker


class Cluster:
    """A server and workers that a test kills together and restarts."""

    def __init__(self, address: str, state: Path, workers: int, options: tuple[str, ...]) -> None:
        self.address, self.state, self.workers = address, state, workers
        self.options = options
        self.processes: list[subprocess.Popen] = []
        #: What the killed processes have written to stderr.
        self.errors = ""

    def start(self) -> None:
        self.processes = [self.start_one(place) for place in range(1 + self.workers)]

    def start_one(self, place: int) -> subprocess.Popen:
        """Start the server, whose index is 0, or a worker."""
        if place == 0:
            return start_server(self.address, self.state / "server", *self.options)
        name = f"w{place - 1}"
        return start_worker(self.address, name, "--state", str(self.state / name))

    def wait_for_snapshot(self, least: int = 1000) -> int:
        """Wait until a worker's journal has values of a snapshot, in more than `least` bytes.

        Returns the size of the longest journal.
        """
        until = time.monotonic() + 60
        while (size := self.longest_journal()) <= least:
            assert time.monotonic() < until, "no snapshot was written"
            time.sleep(0.01)
        return size

    def longest_journal(self) -> int:
        """Return the size of the longest of the workers' journals."""
        return max((path.stat().st_size for path in self.state.glob("w*/journal-*")), default=0)

    def kill(self, first: int = 0) -> None:
        """Kill all processes from an index on together."""
        for process in self.processes[first:]:
            process.kill()
        for process in self.processes[first:]:
            self.errors += process.communicate(timeout=20)[1]
        del self.processes[first:]

    def restart_workers(self) -> None:
        self.kill(first=1)
        self.processes += [self.start_one(place) for place in range(1, 1 + self.workers)]


@contextmanager
def durable(workers: int, state: Path, *options: str):
    with cluster(0) as (address, processes):
        server = processes.pop()
        server.kill()
        server.communicate(timeout=20)
        running = Cluster(address, state, workers, options)
        running.start()
        try:
            yield running
        finally:
            running.kill()
