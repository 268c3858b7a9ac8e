"""Sessions whose operations kill workers are identified, and other sessions are not affected."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import cluster, line_in_program, one_engine_only, run_program, unsharded_only
from training import Training

# These tests start workers with their own engines.
pytestmark = [one_engine_only, unsharded_only]

HERE = str(Path(__file__).parent)

#: A program that kills workers with a bad engine, and continues afterwards.
KILLER = "engines/killer"


class Tended:
    """A worker that is restarted whenever it ends."""

    def __init__(self, address: str, name: str, engine: str) -> None:
        self.command = [sys.executable, "-m", "gt.worker", "--address", address, "--id", name]
        self.command += ["--backend", f"bad_engines:{engine}"]
        path = f"{HERE}:{os.environ.get('PYTHONPATH', HERE)}"
        self.environment = {**os.environ, "PYTHONPATH": path, "GT_ENGINE_TIMEOUT": "1"}
        self.deaths = 0
        self.is_over = False
        self.process = self._start()
        self.thread = threading.Thread(target=self._tend)
        self.thread.start()

    def _start(self) -> subprocess.Popen:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        process = subprocess.Popen(self.command, env=self.environment, **pipes)
        assert process.stdout.readline().startswith("gt worker")
        return process

    def _tend(self) -> None:
        while True:
            self.process.wait()
            self.process.stdout.close()
            if self.is_over:
                return
            self.deaths += 1
            self.process = self._start()
            if self.is_over:
                self.process.kill()

    def end(self) -> None:
        self.is_over = True
        self.process.kill()
        self.thread.join()


@contextmanager
def tended(workers: int, engine: str):
    """Yield the address of a server, and its workers, which are restarted when they end."""
    with cluster(workers=0) as (address, _):
        all = [Tended(address, f"bad{number}", engine) for number in range(workers)]
        try:
            yield address, all
        finally:
            for worker in all:
                worker.end()


@pytest.mark.parametrize(
    ("engine", "workers", "steps", "most"),
    [("Dying", 1, 0, 4), ("Dying", 2, 0, 4), ("Fragile", 1, 60, 6), ("Hanging", 1, 0, 4)],
    ids=["one worker", "two workers", "in a hot loop", "hangs"],
)
def test_who_kills_workers_is_found_and_neighbours_are_not_harmed(engine, workers, steps, most):
    seeds, count = (1, 2), 1500
    with tended(workers, engine) as (address, _):
        alone = [Training("engines/neighbour", address, count, seed) for seed in seeds]
        expected = [neighbour.end() for neighbour in alone]
    with tended(workers, engine) as (address, all):
        neighbours = [Training("engines/neighbour", address, count, seed) for seed in seeds]
        for neighbour in neighbours:
            neighbour.wait_for(200)
        done = run_program(KILLER, address, steps)
        assert done.stdout, done.stderr
        first, after = done.stdout.splitlines()
        line = line_in_program(KILLER, "y = y + " if steps else "y = x.tanh()")
        for words in ("tanh of float32 (4, 3)", "'bad", "48 bytes", line):
            assert words in first, (first, done.stderr)
        assert after == "[6.0, 6.0, 6.0]"
        assert [neighbour.end() for neighbour in neighbours] == expected
        # Once the neighbours have ended, the server risks the last worker too.
        assert 3 <= sum(it.deaths for it in all) <= most
    for neighbour in neighbours:
        assert not [line for line in neighbour.errors if "lost:" in line or "not" in line]
