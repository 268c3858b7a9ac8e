"""Workers on a GPU as processes: one that dies and is replaced, and many sessions."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import gt
import numpy as np
import pytest
from machine import ENVIRONMENT, ON_GPU
from processes import cluster, run_program


@pytest.fixture
def served(monkeypatch):
    """Yield the address of a server with one worker on the device, and the worker."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with cluster(1) as (address, processes):
        yield address, processes[1]


@contextmanager
def another_worker(address: str, name: str):
    process = subprocess.Popen(
        [sys.executable, "-m", "gt.worker", "--address", address, "--id", name],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline().startswith("gt worker")
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_work_goes_on_after_a_worker_was_killed(served, capfd):
    """The lost tensors are recomputed on the next worker, which has the GPU to itself."""
    address, worker = served
    with gt.Session(address):
        x = gt.ones(1000)
        assert x.sum().item() == 1000
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        with another_worker(address, "next"):
            assert (x + 1).tolist() == [2] * 1000
            assert "the worker 'w0' was lost" in capfd.readouterr().err
            for _ in range(3):
                assert (gt.ones(1000) + 1).sum().item() == 2000
            assert list(gt.debug.get_worker_stats()) == ["next"]


SESSIONS, ROUNDS, LENGTH = 10, 12, 200_000


def train(address: str, number: int, results: dict) -> None:
    """Compute a result that depends on the number, in a new session."""
    try:
        with gt.Session(address):
            values = np.full(LENGTH, number, "float32")
            total = gt.tensor(values)
            for _ in range(ROUNDS):
                total = total * 0.5 + gt.tensor(values)
            results[number] = total.numpy()
    except Exception as error:
        results[number] = error


def test_ten_sessions_share_a_gpu(served):
    address, worker = served
    results: dict = {}
    threads = [
        threading.Thread(target=train, args=(address, number, results))
        for number in range(SESSIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    for number in range(SESSIONS):
        wanted = number * (2 - 0.5**ROUNDS)
        assert not isinstance(results[number], Exception), results[number]
        np.testing.assert_allclose(results[number], np.full(LENGTH, wanted), rtol=1e-5)
    # No tensors of these sessions remain.
    with gt.Session(address):
        assert gt.ones(2).tolist() == [1, 1]
        assert status_bytes() <= 1000
    assert resident(worker.pid) < (12 << 30 if ON_GPU else 2 << 30)


def status_bytes() -> int:
    """Return the size of all workers' tensors in bytes."""
    return sum(worker["bytes"] for worker in gt.status().workers)


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_clients_in_processes_of_their_own(served):
    address, _ = served
    found: dict[int, str] = {}

    def run(number: int) -> None:
        done = run_program("gpu/shares_a_gpu", address, number, timeout=300)
        found[number] = done.stdout or done.stderr

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    for number in range(4):
        assert abs(float(found[number]) - number) < 1e-3, found[number]
