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
