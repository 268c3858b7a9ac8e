"""Sessions on a server outlive their workers: no tensor is lost, and all numbers stay the same."""

import signal
import subprocess
import sys
import time

import pytest
from processes import cluster, embedded_only, one_engine_only, unsharded_only
from training import SHARDED, TRAINING, Training, start_worker, undisturbed

# They start servers of their own.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


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


def test_a_program_gives_the_same_bits_after_workers_were_replaced():
    """On three workers, so that it shows in which order sums are taken."""
    expected = undisturbed(SHARDED, 3, 200)
    with cluster(3) as (address, processes):
        for number in range(2):
            victim = processes.pop(1)
            victim.kill()
            victim.communicate()
            processes.append(start_worker(address, f"new{number}"))
            assert Training(SHARDED, address, 200).end() == expected


def test_a_stopped_worker_is_given_up_and_costs_nothing():
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


MEMORY = """
import sys, time
import gt
gt.connect(sys.argv[1])
count, until = int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
xs = [gt.full((1_000_000,), float(i)) + 0 for i in range(count)]
steps = 0
while time.monotonic() < until:
    xs[steps % count] = xs[steps % count] + 1
    steps += 1
    if steps % 10 == 0:
        xs[0].sum().item()
expected = count * (count - 1) / 2 + steps
kept = gt.status().sessions[0]["unkept"]
is_on_disk = sum(worker["spilled_bytes"] for worker in gt.status().workers) > 0
print("kept" if kept == "" else kept, is_on_disk, flush=True)
sys.stdin.readline()
is_even = all(x.min().item() == x.max().item() for x in xs)
print(sum(x[0].item() for x in xs) == expected and is_even)
"""


class Memory:
    """A program that holds many tensors of 4 MB, and counts them after a worker was lost."""

    def __init__(self, address: str, count: int, seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MEMORY, address, str(count), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.line = self.process.stdout.readline()

    def end(self) -> tuple[str, str]:
        return self.process.communicate("go\n", timeout=60)


def test_what_was_written_away_is_in_snapshots(tmp_path):
    """The log is too short to hold all: without a snapshot the session would not be kept."""
    options = ["--memory", "100MB", "--spill-dir", str(tmp_path)]
    with cluster(2, "--lineage", "200KB", worker_options=options) as (address, processes):
        program = Memory(address, 40, 4)
        assert program.line == "kept True\n", program.end()
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        out, errors = program.end()
        assert out == "True\n", (out, errors)
        assert "are made again" in errors


def test_snapshots_give_way_to_tensors():
    """Two workers have room for the tensors, but not for copies as well."""
    with cluster(2, worker_options=["--memory", "100MB"]) as (address, _):
        first, second = Memory(address, 9, 1), Memory(address, 9, 1)
        assert "kept" in first.line and "kept" in second.line, (first.end(), second.end())
        third = Memory(address, 10, 1)
        for program in (third, second, first):
            out, errors = program.end()
            assert out == "True\n", (out, errors)
