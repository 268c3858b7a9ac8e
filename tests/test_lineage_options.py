"""What a server keeps of sessions, by its options, and what other engines make of that."""

import importlib.util
import json
import subprocess
import sys

import pytest
from processes import cluster, embedded_only, one_engine_only, run_python, unsharded_only
from training import Training, start_worker

# They start servers of their own.
pytestmark = [embedded_only, unsharded_only, one_engine_only]

#: Holds eight tensors of a megabyte, which have changed often; says why they would be lost.
HOLDS = """
import sys
import gt
gt.connect(sys.argv[1])
xs = [gt.ones(250_000) for _ in range(8)]
for step in range(2000):
    xs[step % 8] = xs[step % 8] * 1.5 + step
    if step % 8 == 7:
        xs[0].sum().item()
print(gt.status().sessions[0]["unkept"] or "kept", flush=True)
"""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "kept"),
        (["--lineage", "20KB"], "kept"),
        (["--lineage", "20KB", "--lineage-disk", "1MB"], "the server does not keep"),
        (["--lineage-total", "20KB", "--lineage-disk", "1MB"], "the server does not keep"),
        (["--lineage-disk", "1MB"], "kept"),
        (["--lineage", "0"], "nothing is kept"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_one_worker_keeps_what_the_options_allow(options, reason):
    """The log is enough if it is long, or the disk has room for snapshots."""
    with cluster(1, *options) as (address, _):
        # Without hot paths: the log of one would be short.
        done = run_python(HOLDS, address, GT_AUTO_COMPILE="0")
    told = done.stdout.strip()
    assert told == reason if reason == "kept" else reason in told, done


#: Trains, says each hundredth step, and the parameters in the end.
VALUES = """
import json, sys
import gt
from gt import nn, optim
gt.connect(sys.argv[1])
gt.manual_seed(0)
inputs, labels = gt.randn(256, 32), gt.randint(0, 10, (256,))
model = nn.Sequential(nn.Linear(32, 48), nn.Tanh(), nn.Linear(48, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[2])):
    if step % 100 == 0:
        print("step", step, flush=True)
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
print(json.dumps([value.detach().flatten().tolist() for value in model.parameters()]))
"""

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="NO PyTorch here"
)


@pytest.mark.parametrize("other", ["numpy", pytest.param("pytorch", marks=needs_torch)])
def test_another_engine_goes_on_with_numbers_that_are_close(other):
    """Sums in another order differ in the last digits: after 600 steps by a millionth or so."""
    steps = 600
    with cluster(1) as (address, _):
        expected = Training(VALUES, address, steps).end()
    with cluster(1) as (address, processes):
        # The session begins on the first worker.
        processes.append(start_worker(address, "other", "--backend", other))
        training = Training(VALUES, address, steps)
        training.wait_for(200)
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        found = training.end()
    assert any("are made again" in line for line in training.errors), training.errors
    for left, right in zip(json.loads(expected), json.loads(found), strict=True):
        assert right == pytest.approx(left, rel=1e-3, abs=1e-4)
    # Not the same bits, or it would not be another engine's work.
    assert found != expected or other == "numpy"


@pytest.mark.parametrize("engine", ["numpy", pytest.param("pytorch", marks=needs_torch)])
def test_the_same_engine_goes_on_with_the_same_bits(engine):
    """On one device, in one thread, the engines in Python give the same bits each time."""
    steps, options = 400, ["--backend", engine, "--threads", "1"]
    with cluster(2, worker_options=options) as (address, _):
        expected = Training(VALUES, address, steps).end()
    with cluster(2, worker_options=options) as (address, processes):
        training = Training(VALUES, address, steps)
        training.wait_for(200)
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        assert training.end() == expected


TOLD = """
import sys
import gt
gt.connect(sys.argv[1])
x = gt.ones(1000)
x.sum().item()
print("ready", flush=True)
sys.stdin.readline()
print((x * 2).sum().item(), gt.status().sessions[0]["recoveries"], flush=True)
"""


def test_a_recovery_is_counted_and_logged(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    with cluster(2) as (address, processes):
        monkeypatch.delenv("GT_INSTRUCTION_LOG")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", TOLD, address], text=True, **pipes) as program:
            assert program.stdout.readline() == "ready\n"
            victim = processes.pop(1)
            victim.kill()
            victim.communicate()
            out, errors = program.communicate("go\n", timeout=30)
    assert out == "2000.0 1\n", errors
    assert errors.count("are made again") == 1, errors
    told = [line for line in log.read_text().splitlines() if "Recovery" in line]
    assert len(told) == 1 and "WORKER_RECV" in told[0], told
