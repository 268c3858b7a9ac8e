"""PyTorch workers in processes of their own that move tensors by Gloo, over the loopback."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from processes import cluster, embedded_only, run_python

pytestmark = embedded_only

#: Prints losses and parameters of data-parallel, then tensor-parallel training.
TRAIN = """
import gt
from gt import ShardConfig, SignalConfig

gt.manual_seed(1)
gt.register_config("rows", SignalConfig(ShardConfig(axis=0)))
gt.register_config("columns", SignalConfig(ShardConfig(axis=-1)))
gt.register_config("copies", SignalConfig(ShardConfig(replicated=True)))
for data, weights in (("rows", "copies"), ("copies", "columns"), ("rows", "rows")):
    with gt.signal.context(weights):
        model = gt.nn.Sequential(gt.nn.Linear(7, 16), gt.nn.ReLU(), gt.nn.Linear(16, 3))
    with gt.signal.context(data):
        x, y = gt.randn(33, 7), gt.randint(0, 3, (33,))
    optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
    for step in range(12):
        with gt.signal.context(data):
            loss = gt.nn.cross_entropy_loss(model(x), y)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            print(loss.item())
    for parameter in model.parameters():
        print(*parameter.flatten().tolist())
"""

CONNECTED = "import sys, gt\ngt.connect(sys.argv[1])\n"

#: Cuts along the first axis by itself: `rows(...)` gives such a tensor.
ROWS = """
gt.register_config("rows", gt.SignalConfig(gt.ShardConfig(axis=0)))
def rows(made):
    with gt.signal.context("rows"):
        return made()
"""


@pytest.fixture
def gloo(monkeypatch, tmp_path):
    """Let workers that are started join each other; give the path of the server's log."""
    pytest.importorskip("torch", reason="pytorch: make test-all")
    log = tmp_path / "gt.log"
    monkeypatch.setenv("GT_BACKEND", "pytorch")
    monkeypatch.setenv("GT_COLLECTIVES", "gloo")
    monkeypatch.setenv("GT_COLLECTIVES_TIMEOUT", "20")
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    # Threads that wait for each other on few cores are slow.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return log


def numbers(text):
    return [float(number) for number in text.split()]


@pytest.mark.parametrize("workers", [2, 3])
def test_sharded_training_gives_the_same_numbers(gloo, workers):
    alone = run_python(TRAIN, GT_BACKEND="native", GT_INSTRUCTION_LOG="")
    want = numbers(alone.stdout)
    with cluster(workers) as (address, _):
        done = run_python(CONNECTED + TRAIN, address)
    assert done.returncode == 0, done
    assert numbers(done.stdout) == pytest.approx(want, rel=1e-3, abs=1e-4)
    log = gloo.read_text()
    moves = re.findall(r"WorkerAll\w+|WorkerReduceScatter.* by=gloo/", log)
    assert len(moves) > 100 and "HotPathStart" in log
    # All that goes between workers goes by Gloo.
    pieces = [line for line in log.splitlines() if " from=[" in line and "by=gloo/" not in line]
    assert [line for line in pieces if "to=[] from=[]" not in line] == []


def test_every_dtype_is_moved(gloo):
    code = (
        CONNECTED
        + ROWS
        + "gt.register_config('columns', gt.SignalConfig(gt.ShardConfig(axis=1)))\n"
        "nan = float('nan')\n"
        "for dtype in (gt.bool, gt.uint8, gt.int16, gt.int64, gt.float16, gt.float64):\n"
        "    data = [[i * j % 7 for j in range(3)] for i in range(5)]\n"
        "    x = rows(lambda: gt.tensor(data, dtype=dtype))\n"
        "    with gt.signal.context('columns'): y = gt.cat([x, x])\n"
        "    most = [max(column) for column in zip(*x.tolist())]\n"
        "    print(y.tolist() == x.tolist() * 2, x.amax(dim=0).tolist() == most)\n"
        "x = rows(lambda: gt.tensor([[1.0, nan], [2.0, 3.0], [5.0, 4.0]]))\n"
        "print(x.amax(dim=0).tolist(), x.sum(dim=0).tolist())\n"
    )
    with cluster(2) as (address, _):
        done = run_python(code, address)
    assert done.stdout == "True True\n" * 6 + "[5.0, nan] [8.0, nan]\n", done


def test_the_failure_of_one_part_reaches_the_user(gloo):
    code = (
        CONNECTED + ROWS + "table = gt.ones(4, 4)\n"
        "index = rows(lambda: gt.tensor([1] * 8 + [70], dtype=gt.int64))\n"
        "total = rows(lambda: table[index].sum(dim=0) * 2)\n"
        "try: total.tolist()\n"
        "except Exception as error: print('index 70 is not in [-4, 4)' in str(error))\n"
        "print(rows(lambda: gt.ones(9, 2).sum(dim=0) * 2).tolist())\n"
    )
    with cluster(2) as (address, _):
        done = run_python(code, address)
    assert done.stdout == "True\n[18.0, 18.0]\n", done


@pytest.mark.parametrize("which", [0, 1])
def test_a_member_that_is_killed_in_the_middle_costs_nothing(gloo, which):
    """Whether it keeps the store where the group finds together or not."""
    code = (
        CONNECTED + ROWS + "import time\n"
        "x = rows(lambda: gt.randn(4, 300000))\n"
        "def step(): return rows(lambda: (x.sum(dim=0) * 2.0).sum())\n"
        "step().item(); print('ready', flush=True)\n"
        "start = time.monotonic()\n"
        "while time.monotonic() - start < 6: step().item()\n"
        "start = time.monotonic()\n"
        "print((gt.ones(2) + 1).tolist(), time.monotonic() - start < 30)\n"
        "print((rows(lambda: gt.ones(4, 2)).sum(dim=0) + 1).tolist())\n"
    )
    with cluster(3) as (address, processes):
        command = [sys.executable, "-c", code, address]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        processes[1 + which].send_signal(signal.SIGKILL)
        out, error = process.communicate(timeout=60)
        assert out == "[2.0, 2.0] True\n[5.0, 5.0]\n", (out, error)
        assert f"'w{which}' was lost" in error and "are made again" in error
        assert [one.poll() for one in processes] == [
            -signal.SIGKILL if place == 1 + which else None for place in range(4)
        ]


def test_two_programs_at_once(gloo):
    """Their exchanges come to all workers in one order, however they mix."""
    code = (
        CONNECTED + ROWS + "gt.manual_seed(0)\n"
        "x = rows(lambda: gt.ones(6, 1000))\n"
        "for _ in range(60): x = rows(lambda: x + (x.sum(dim=0) / 6 - x) * 0.5)\n"
        "print(x.sum().item())\n"
    )
    with cluster(3) as (address, _):
        command = [sys.executable, "-c", code, address]
        clients = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
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


def test_what_cannot_be_is_said_at_the_start():
    done = worker(GT_COLLECTIVES="mpi")
    assert done.returncode == 1
    assert "GT_COLLECTIVES is 'mpi', expected one of auto, off, nccl, gloo" in done.stderr
    done = worker(GT_COLLECTIVES="gloo", GT_BACKEND="native")
    assert done.returncode == 1
    assert "GT_COLLECTIVES is 'gloo', but the engine 'native' has no collectives" in done.stderr
