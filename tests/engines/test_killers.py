"""Sessions whose operations end workers: they are found, and nobody else is harmed."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import cluster, one_engine_only, run_python, unsharded_only
from training import Training

# They start engines of their own.
pytestmark = [one_engine_only, unsharded_only]

HERE = str(Path(__file__).parent)

#: A loop of its own, with its state in the end.
NEIGHBOUR = """
import hashlib, sys
import numpy as np
import gt
gt.connect(sys.argv[1])
gt.manual_seed(int(sys.argv[3]))
w, x = gt.randn(24, 24) / 8, gt.randn(24, 24)
values = []
for step in range(int(sys.argv[2])):
    x = (x @ w).relu() + gt.randn(24, 24) * 0.1
    if step % 20 == 0:
        values.append(x.sum().item())
        print("step", step, flush=True)
state = np.array(values).tobytes() + x.numpy().tobytes()
print("hash", hashlib.sha256(state).hexdigest())
"""

#: What a worker with a bad engine dies of; the session goes on afterwards.
KILLER = """
import sys
import gt
gt.connect(sys.argv[1])
x = gt.ones(4, 3) + 1
y = x.tanh()
for step in range(int(sys.argv[2])): y = y + (x * 0.5 + step).tanh()
try: print(y.tolist())
except gt.WorkerError as error: print("|".join(str(error).splitlines()))
print((x * 3).tolist()[0])
"""


class Tended:
    """A worker that is started again whenever it ends."""

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
    """Run a server with workers that are tended; give its address and them."""
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
        alone = [Training(NEIGHBOUR, address, count, seed) for seed in seeds]
        expected = [neighbour.end() for neighbour in alone]
    with tended(workers, engine) as (address, all):
        neighbours = [Training(NEIGHBOUR, address, count, seed) for seed in seeds]
        for neighbour in neighbours:
            neighbour.wait_for(200)
        done = run_python(KILLER, address, str(steps))
        assert done.stdout, done.stderr
        first, after = done.stdout.splitlines()
        line = 8 if steps else 7
        for words in ("tanh of float32 (4, 3)", "'bad", "48 bytes", f"<string>:{line}"):
            assert words in first, (first, done.stderr)
        assert after == "[6.0, 6.0, 6.0]"
        assert [neighbour.end() for neighbour in neighbours] == expected
        # With the neighbours at an end, the last worker is risked, too.
        assert 3 <= sum(it.deaths for it in all) <= most
    for neighbour in neighbours:
        assert not [line for line in neighbour.errors if "lost:" in line or "not" in line]
