"""Hot loops that are disturbed: the results stay correct."""

import subprocess
import sys
import time

import gt
import numpy as np
import pytest
from processes import cluster, embedded_only

pytestmark = embedded_only


def start_worker(address: str, processes: list[subprocess.Popen]) -> None:
    """Start another worker of a server, and wait until it is connected."""
    command = [sys.executable, "-m", "gt.worker", "-p", address.rsplit(":")[1], "--id", "late"]
    processes.append(
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    )
    processes[-1].stdout.readline()
    time.sleep(0.5)


def kill(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    time.sleep(0.5)


def test_iterations_without_used_results_are_skipped():
    """Predictions of the later iterations account for the skipped ones."""
    with gt.Session(workers=1):
        big, x = gt.randn(1500, 1500), gt.zeros(4)

        def body(i):
            return [(x + i) if k % 2 else (x - i) for k in range(18)]

        for i in range(60):
            warm = body(i)
        warm[1].sum().item()
        # Keeps the worker busy, so that the iterations wait in queues.
        busy = big @ big @ big
        results = [body(i) for i in range(100, 400)]
        results[150] = results[200] = None
        assert results[-1][1].tolist() == [399.0] * 4
        got = {i: of[1].tolist()[0] for i, of in enumerate(results) if of is not None}
        assert got == {i: 100.0 + i for i in got}
        assert busy.shape == (1500, 1500)


def test_a_free_before_a_step_that_binds_another_tensor():
    with gt.Session(workers=1):
        x, held, last = gt.ones(4), gt.full((4,), 5.0), gt.zeros(4)
        for i in range(200):
            made = x * 1.0
            if i == 150:
                # Frees the tensor that this iteration would have read.
                last = held
            last = last + made
            rest = made + 0.0
            for _ in range(18):
                rest = rest + 0.0
            del rest, made
        assert last.tolist() == [55.0] * 4 and held.tolist() == [5.0] * 4


def test_a_worker_that_joins_during_a_hot_loop():
    with cluster(2) as (address, processes), gt.Session(address):
        rows = gt.arange(6400).reshape(6400, 1).float()
        total, last = gt.zeros(1), gt.zeros(1)
        rows.sum().item()
        kill(processes[2])
        for k in range(90):
            batch = rows[64 * k : 64 * k + 64]
            total = total + batch.sum()
            last = last + k
            for _ in range(18):
                batch = batch + 0.0
            if k == 50:
                start_worker(address, processes)
        assert total.tolist() == [sum(range(90 * 64))] and last.tolist() == [sum(range(90))]


def test_a_loop_that_changes_while_no_worker_is_connected():
    """Its template has the number of the old one, whose plans must be dropped with it."""

    def body(value, operation):
        value = value * 1.0
        for _ in range(19):
            value = operation(value, 1.0)
        return value

    with cluster(1) as (address, processes), gt.Session(address) as session:
        value = gt.zeros(4)
        for _ in range(150):
            value = body(value, gt.Tensor.__add__)
        session.synchronize()
        kill(processes[1])
        value = gt.zeros(4)
        for _ in range(100):
            value = body(value, gt.Tensor.__sub__)
        start_worker(address, processes)
        for _ in range(100):
            value = body(value, gt.Tensor.__sub__)
        assert value.tolist() == [-3800.0] * 4


def test_a_plan_notices_redistributions_by_another():
    """One plan combines partial sums and frees them; the other one read the partial sums before."""
    gt.register_config("disturbed rows", gt.SignalConfig(gt.ShardConfig(axis=0)))
    with gt.Session(workers=2), gt.signal.context("disturbed rows"):
        x = gt.arange(12.0).reshape(4, 3)

        def twice(sums):
            for _ in range(10):
                sums = sums + sums
            return sums

        def powers(sums):
            value = sums
            for _ in range(10):
                value = (value * 0.01).exp()
            return value

        want = [(x.sum(dim=0) * 1024.0).tolist(), powers(x.sum(dim=0)).tolist()]
        for i in range(60):
            sums = x.sum(dim=0)
            results = [twice(sums) for _ in range(2)]
            last = powers(sums)
            results.append(twice(sums))
            if i % 7 == 6:
                assert [of.tolist() for of in results] == [want[0]] * 3
                assert last.tolist() == want[1]


def test_sums_of_rows_between_assignments_are_one_program():
    """A result with one element for each row must not overwrite an input that is broadcast."""
    data = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")
    want = data.copy()
    with gt.Session(workers=1):
        x = gt.from_numpy(data)
        for _ in range(40):
            for _ in range(2):
                sums, total = x.sum(axis=1, keepdims=True), want.sum(axis=1, keepdims=True)
                x[0:8] = 0.25
                want[0:8] = 0.25
                x, want = (x + sums * 0.1) * 0.5, (want + total * np.float32(0.1)) * np.float32(0.5)
            rest = gt.ones(3)[0:1]
        assert x.numpy() == pytest.approx(want, rel=1e-4, abs=1e-6)
        assert rest.tolist() == [1.0]
        [stats] = gt.debug.get_worker_stats().values()
    assert stats["compilation"]["failures"] == 0, stats
