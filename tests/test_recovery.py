"""Sessions on a server outlive their workers: all tensors are restored, with the same bits."""

import signal
import time

import pytest
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    start_program,
    unsharded_only,
)
from training import SHARDED, TRAINING, Training, start_worker, undisturbed

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


@pytest.mark.parametrize(
    ("name", "workers"),
    [(TRAINING, 1), (TRAINING, 2), (SHARDED, 2)],
    ids=["one", "two", "sharded"],
)
def test_training_resumes_with_the_same_bits_when_workers_are_killed(name, workers):
    steps = 1500
    expected = undisturbed(name, workers, steps)
    with cluster(workers) as (address, processes):
        training = Training(name, address, steps)
        for kill, step in enumerate((200, 700, 1200)):
            training.wait_for(step)
            victim = processes.pop(1)
            victim.kill()
            victim.communicate()
            processes.append(start_worker(address, f"new{kill}"))
        assert training.end() == expected
    notices = [line for line in training.errors if "are restored" in line]
    # A worker that cannot reach the killed one may report that before the server notices the loss.
    assert len(notices) == len(training.errors) <= 6, "".join(training.errors)
    assert notices or workers > 1, "the only worker was killed"


def test_a_program_computes_the_same_bits_after_workers_were_replaced():
    """On three workers the bits depend on the order of the terms of a sum."""
    expected = undisturbed(SHARDED, 3, 200)
    with cluster(3) as (address, processes):
        for number in range(2):
            victim = processes.pop(1)
            victim.kill()
            victim.communicate()
            processes.append(start_worker(address, f"new{number}"))
            assert Training(SHARDED, address, 200).end() == expected


def test_a_stopped_worker_is_replaced_and_costs_no_result():
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


def test_tensors_that_cannot_be_restored_raise():
    with cluster(2, "--lineage", "0") as (address, processes):
        program = start_program("recovery/without_lineage", address)
        assert program.stdout.readline() == "step 0\n"
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        out, _ = program.communicate("go\n", timeout=30)
        assert out == "error True\n"


class Memory:
    """A program that holds many tensors of 4 MB, and checks them after a worker was lost."""

    def __init__(self, address: str, count: int, seconds: float) -> None:
        self.process = start_program("recovery/many_tensors", address, count, seconds)
        self.line = self.process.stdout.readline()

    def end(self) -> tuple[str, str]:
        return self.process.communicate("go\n", timeout=60)


def test_spilled_tensors_are_in_snapshots(tmp_path):
    """The log is too short for the whole session, so it can only be restored from a snapshot."""
    options = ["--memory", "100MB", "--spill-dir", str(tmp_path)]
    with cluster(2, "--lineage", "200KB", worker_options=options) as (address, processes):
        program = Memory(address, 40, 4)
        assert program.line == "kept True\n", program.end()
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        out, errors = program.end()
        assert out == "True\n", (out, errors)
        assert "are restored" in errors


def test_snapshots_are_dropped_to_make_room_for_tensors():
    """Two workers have room for the tensors, but not for their copies."""
    with cluster(2, worker_options=["--memory", "100MB"]) as (address, _):
        first, second = Memory(address, 9, 1), Memory(address, 9, 1)
        assert "kept" in first.line and "kept" in second.line, (first.end(), second.end())
        third = Memory(address, 10, 1)
        for program in (third, second, first):
            out, errors = program.end()
            assert out == "True\n", (out, errors)
