"""Sessions on a server outlive their workers: no tensor is lost, and all numbers stay the same."""

import itertools
import subprocess
import sys
import threading
import time

import pytest
from processes import cluster, embedded_only, one_engine_only, unsharded_only

# They start servers of their own.
pytestmark = [embedded_only, unsharded_only, one_engine_only]

#: Trains for some steps; says each hundredth, and a hash of all state in the end.
TRAINING = """
import hashlib, sys
import numpy as np
import gt
from gt import nn, optim

gt.connect(sys.argv[1])
data = np.random.default_rng(0)
inputs = gt.from_numpy(data.standard_normal((256, 64)).astype("float32"))
labels = gt.from_numpy(data.integers(0, 10, 256))
gt.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 10))
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for step in range(int(sys.argv[2])):
    if step % 100 == 0:
        print("step", step, flush=True)
    at = slice(step * 64 % 256, step * 64 % 256 + 64)
    loss = nn.functional.cross_entropy(model(inputs[at]), labels[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        loss.item()
state = [value.detach() for value in model.parameters()] + [gt.randn(8), loss.detach()]
for one in optimizer.state_dict()["state"].values():
    state += [value for value in one.values() if isinstance(value, gt.Tensor)]
print("hash", hashlib.sha256(b"".join(value.numpy().tobytes() for value in state)).hexdigest())
"""

#: As above, of a model whose data is cut over the workers.
SHARDED = TRAINING.replace(
    "gt.manual_seed(0)",
    """
gt.register_config("cut", gt.SignalConfig(gt.ShardConfig(axis=0)))
with gt.signal.context("cut"):
    inputs, labels = inputs * 1, labels * 1
gt.manual_seed(0)""",
)


def start_worker(address: str, name: str, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "gt.worker", "--address", address, "--id", name, *options]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert worker.stdout.readline().startswith("gt worker")
    return worker


class Training:
    """A program in a process of its own."""

    def __init__(self, code: str, *args: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.times: list[float] = []
        self.errors: list[str] = []
        self.threads = [
            threading.Thread(target=self._read),
            threading.Thread(target=lambda: self.errors.extend(self.process.stderr)),
        ]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        for line in iter(self.process.stdout.readline, ""):
            self.lines.append(line)
            self.times.append(time.monotonic())

    def longest_gap(self) -> float:
        """Give the longest time between two lines."""
        return max(after - before for before, after in itertools.pairwise(self.times))

    def wait_for(self, step: int) -> None:
        until = time.monotonic() + 60
        while f"step {step}\n" not in self.lines:
            assert time.monotonic() < until and self.process.poll() is None, self.errors
            time.sleep(0.005)

    def end(self) -> str:
        """Give the last line."""
        assert self.process.wait(60) == 0, self.errors
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.lines[-1]


def undisturbed(code: str, workers: int, steps: int) -> str:
    with cluster(workers) as (address, _):
        training = Training(code, address, steps)
        result = training.end()
        assert training.errors == []
        return result


@pytest.mark.parametrize(
    ("code", "workers"), [(TRAINING, 1), (TRAINING, 2), (SHARDED, 2)], ids=["one", "two", "cut"]
)
def test_training_goes_on_with_the_same_numbers_when_workers_are_killed(code, workers):
    steps = 1500
    expected = undisturbed(code, workers, steps)
    with cluster(workers) as (address, processes):
        training = Training(code, address, steps)
        for kill, step in enumerate((200, 700, 1200)):
            training.wait_for(step)
            victim = processes.pop(1)
            victim.kill()
            victim.communicate()
            processes.append(start_worker(address, f"new{kill}"))
        assert training.end() == expected
    notices = [line for line in training.errors if "are made again" in line]
    assert len(notices) == len(training.errors) <= 3, training.errors
    assert notices or workers > 1, "the only worker was killed"


def test_a_stopped_worker_is_given_up_and_costs_nothing():
    import signal

    steps = 600
    expected = undisturbed(TRAINING, 1, steps)
    with cluster(1) as (address, processes):
        training = Training(TRAINING, address, steps)
        training.wait_for(200)
        processes[1].send_signal(signal.SIGSTOP)
        processes.append(start_worker(address, "other"))
        begin = time.monotonic()
        assert training.end() == expected
        assert time.monotonic() - begin < 30
        processes[1].send_signal(signal.SIGCONT)


def test_what_cannot_be_made_again_says_so():
    code = """
import sys
import gt
gt.connect(sys.argv[1])
x = gt.ones(1000)
y = (x * 2).sum().item()
print("step 0", flush=True)
sys.stdin.readline()
try:
    x.sum().item()
except gt.WorkerError as error:
    print("error", "was lost" in str(error))
"""
    with cluster(2, "--lineage", "0") as (address, processes):
        program = subprocess.Popen(
            [sys.executable, "-c", code, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout.readline() == "step 0\n"
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        out, _ = program.communicate("go\n", timeout=30)
        assert out == "error True\n"
