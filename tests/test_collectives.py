"""Workers with the PyTorch engine run collectives over Gloo, on the loopback interface."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from processes import cluster, embedded_only, run_program, start_program

pytestmark = embedded_only


@pytest.fixture
def gloo(monkeypatch, tmp_path):
    """Configure workers that start to use Gloo; return the path of the server's log."""
    pytest.importorskip("torch", reason="pytorch: make test-all")
    log = tmp_path / "gt.log"
    monkeypatch.setenv("GT_BACKEND", "pytorch")
    monkeypatch.setenv("GT_COLLECTIVES", "gloo")
    monkeypatch.setenv("GT_COLLECTIVES_TIMEOUT", "20")
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    # More threads than cores slow each other down.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return log


def numbers(text):
    return [float(number) for number in text.split()]


@pytest.mark.parametrize("workers", [2, 3])
def test_sharded_training_computes_the_same_numbers(gloo, workers):
    alone = run_program("collectives/training", GT_BACKEND="native", GT_INSTRUCTION_LOG="")
    want = numbers(alone.stdout)
    with cluster(workers) as (address, _):
        done = run_program("collectives/training", address)
    assert done.returncode == 0, done
    assert numbers(done.stdout) == pytest.approx(want, rel=1e-3, abs=1e-4)
    log = gloo.read_text()
    moves = re.findall(r"WorkerAll\w+|WorkerReduceScatter.* by=gloo/", log)
    assert len(moves) > 100 and "HotPathStart" in log
    # All data between workers is sent over Gloo.
    pieces = [line for line in log.splitlines() if " from=[" in line and "by=gloo/" not in line]
    assert [line for line in pieces if "to=[] from=[]" not in line] == []


def test_collectives_of_every_dtype(gloo):
    with cluster(2) as (address, _):
        done = run_program("collectives/dtypes", address)
    assert done.stdout == "True True\n" * 6 + "[5.0, nan] [8.0, nan]\n", done


def test_the_failure_of_one_shard_is_raised(gloo):
    with cluster(2) as (address, _):
        done = run_program("collectives/bad_index", address)
    assert done.stdout == "True\n[18.0, 18.0]\n", done


@pytest.mark.parametrize("which", [0, 1])
def test_a_worker_killed_during_collectives_costs_no_result(gloo, which):
    """Worker 0 holds the store through which the workers of a group find each other."""
    with cluster(3) as (address, processes):
        process = start_program("collectives/loop", address)
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        processes[1 + which].send_signal(signal.SIGKILL)
        out, error = process.communicate(timeout=60)
        assert out == "[2.0, 2.0] True\n[5.0, 5.0]\n", (out, error)
        assert f"'w{which}' was lost" in error and "are restored" in error
        assert [one.poll() for one in processes] == [
            -signal.SIGKILL if place == 1 + which else None for place in range(4)
        ]


def test_concurrent_programs(gloo):
    """All workers start the collectives of three programs in the same order."""
    with cluster(3) as (address, _):
        clients = [start_program("collectives/averages", address) for _ in range(3)]
        for process in clients:
            out, _ = process.communicate(timeout=60)
            assert float(out) == pytest.approx(6000)


def worker(**environment):
    return subprocess.run(
        [sys.executable, "-m", "gt.worker", "-p", "1"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_invalid_configurations_are_reported_at_start():
    done = worker(GT_COLLECTIVES="mpi")
    assert done.returncode == 1
    assert "GT_COLLECTIVES is 'mpi', expected one of auto, off, nccl, gloo" in done.stderr
    done = worker(GT_COLLECTIVES="gloo", GT_BACKEND="native")
    assert done.returncode == 1
    assert "GT_COLLECTIVES is 'gloo', but the engine 'native' has no collectives" in done.stderr
