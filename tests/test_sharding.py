"""Sharding from Python: what users configure, see and get wrong."""

import os
import signal as signals
import time

import pytest
from processes import cluster, run_python, unsharded_only

pytestmark = unsharded_only

START = """
import gt
from gt import ShardConfig, SignalConfig
gt.gpu_workers(4)
def register(name, **shard):
    gt.register_config(name, SignalConfig(ShardConfig(**shard)))
def placement(x):
    return [(copy.placement, copy.workers) for copy in gt.debug.placement(x)]
"""


def run(code: str, **environment: str) -> str:
    done = run_python(START + code, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or "GT_VERBOSE" in environment, done.stderr
    return done.stdout


def test_what_is_made_in_a_scope_lies_there():
    run("""
register("rows", axis=0)
register("columns", axis=-1, workers=[2, 0])
register("copies", replicated=True, workers=[1, 3])
register("grid", mesh={"a": 2, "b": 2}, axis={"a": 1, "b": 0})
def made(name, make):
    with gt.signal.context(name):
        return placement(make())
all_four = [0, 1, 2, 3]
assert made("rows", lambda: gt.randn(8, 4)) == [("Shard(0)", all_four)]
assert made("rows", lambda: gt.tensor([[1.0], [2.0]])) == [("Shard(0)", all_four)]
assert made("columns", lambda: gt.zeros(8, 4)) == [("Shard(1)", [2, 0])]
assert made("columns", lambda: gt.tensor([[1.0, 2.0]])) == [("Shard(1)", [2, 0])]
assert made("copies", lambda: gt.ones(8, 4)) == [("Replicate", [1, 3])]
assert made("grid", lambda: gt.ones(8, 4)) == [("Shard(1) x Shard(0)", all_four)]
assert made("rows", lambda: gt.tensor(3.0)) == [("Replicate", all_four)]
assert placement(gt.ones(3)) == [("Replicate", [0])]
x = gt.signal.tensor(gt.arange(10), name="rows")
assert ("Shard(0)", all_four) in placement(x) and x.tolist() == list(range(10))
""")


def test_configurations_change_at_run_time():
    run("""
for workers in ([0, 1], [3, 2, 1]):
    register("scope", axis=0, workers=workers)
    with gt.signal.context("scope"):
        assert placement(gt.ones(6)) == [("Shard(0)", workers)]
gt.get_config().clear()
with gt.signal.context("scope"):
    assert placement(gt.ones(6)) == [("Replicate", [0])]
""")


def test_gradients_run_where_the_configuration_says():
    run("""
gt.register_config("forward", SignalConfig(ShardConfig(axis=0, workers=[0, 1]), "back"))
register("back", axis=0, workers=[2, 3])
w = gt.ones(4, 3, requires_grad=True)
with gt.debug.explain(quiet=True) as explanation:
    with gt.signal.context("forward"):
        loss = (gt.ones(8, 4) @ w).exp().sum()
    loss.backward()
    w.grad.sum().item()
workers = {step.operation: step.output.workers for step in explanation.steps}
assert workers["exp"] == [0, 1], workers
products = [step.output.workers for step in explanation.steps if step.operation == "matmul"]
assert products == [[0, 1], [2, 3]], products
""")


def test_explain_says_what_moves_and_why():
    out = run("""
register("rows", axis=0)
x = gt.signal.tensor(gt.randn(64, 8), name="rows")
with gt.debug.explain() as explanation:
    x.argmax(0).sum().item()
gather = explanation.moves[0]
assert gather.collective in ("all_gather", "all_to_all") and gather.source.placement == "Shard(0)"
assert explanation.moved_bytes >= gather.bytes > 0 and "argmax" in gather.reason
assert set(explanation.memory) == {0, 1, 2, 3}
gt.debug.explain(lambda y: y + 1, x)
""")
    assert "argmax: int" not in out and "argmax: float32 (64, 8)" in out and "because" in out
    assert "add: float32 (64, 8) Shard(0) on [0, 1, 2, 3]" in out
    assert "memory: worker 0:" in out


def test_one_worker_can_be_explained_too():
    done = run_python(
        "import gt\n"
        "x = gt.ones(3)\n"
        "with gt.debug.explain() as e: (x * 2).sum().item()\n"
        "assert [s.operation for s in e.steps] == ['mul', 'sum'] and not e.moves\n"
        "assert gt.debug.placement(x)[0].workers == [0]\n"
    )
    assert done.returncode == 0, done.stderr


def test_strict_mode_names_the_line():
    run("""
register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.randn(64, 8)
with gt.debug.strict(100):
    y = x.sum()  # sums are asked for
    bad = x.argmax(0)
y.item()
try:
    bad.tolist()
except gt.WorkerError as error:
    text = str(error)
assert "argmax" in text and "Shard(0)" in text and "strict" in text and "<string>" in text, text
x.argmax(0).tolist()
""")


def test_mistakes_are_told():
    run("""
def message(make, kind):
    try:
        make()
    except kind as error:
        return str(error)
    raise AssertionError("no error")
register("far", axis=0, workers=[0, 7])
with gt.signal.context("far"):
    x = gt.ones(4)
text = message(lambda: x.sum().item(), gt.WorkerError)
assert "'far' names worker 7" in text and "0, 1, 2, 3" in text, text
register("mesh", mesh={"a": 3, "b": 2}, axis={"a": 0})
with gt.signal.context("mesh"):
    x = gt.ones(6)
assert "mesh of 6 workers" in message(x.sum().item, gt.WorkerError)
register("second axis", axis=1)
assert "axis 1" in message(lambda: gt.signal.tensor(gt.ones(3), name="second axis"), IndexError)
for wrong in (dict(workers=[]), dict(workers=[1, 1]), dict(mesh={"a": 2}, axis={"b": 0})):
    message(lambda: register("wrong", **wrong), ValueError)
for wrong in (dict(workers=[-1]), dict(workers="all"), dict(axis={"a": 0})):
    message(lambda: register("wrong", **wrong), TypeError)
message(lambda: gt.signal.exit("never entered"), RuntimeError)
# The session goes on.
assert gt.ones(3).sum().item() == 3
""")


def test_unknown_signals_are_ignored_reported_or_refused():
    code = "register('known', axis=0)\n"
    code += "with gt.signal.context('knwon'): print(gt.ones(2).tolist())\n"
    assert run(code) == "[1.0, 1.0]\n"
    told = run_python(START + code * 2, GT_VERBOSE="1")
    assert told.stderr.count("did you mean 'known'?") == 1 and told.returncode == 0
    refused = run_python(START + code, GT_STRICT="1")
    assert refused.returncode == 1 and "did you mean 'known'?" in refused.stderr


def test_a_scope_left_open_is_told_at_the_end():
    done = run_python(START + "gt.signal.enter('open')\nprint(gt.ones(1).item())\n")
    assert done.returncode == 0 and done.stdout == "1.0\n"
    assert "'open' was entered and never left" in done.stderr


def test_large_tensors_are_cut_unasked():
    code = """
large, small = gt.randn(1024, 512), gt.randn(16, 16)
assert placement(large) == [("Shard(0)", [0, 1, 2, 3])], placement(large)
assert placement(small) == [("Replicate", [0])]
product = large.T @ large
print(product.shape, round((product - product.T).abs().max().item(), 3))
"""
    assert run(code, GT_AUTO_SHARD="1") == "(512, 512) 0.0\n"
    assert "Shard(0)" in run("print(placement(gt.ones(64)))", GT_AUTO_SHARD="100")
    assert "ignored" in run_python("import gt; gt.ones(1).item()", GT_AUTO_SHARD="many").stderr


CONNECT = """
import gt, sys
from gt import ShardConfig, SignalConfig
gt.connect(sys.argv[1])
gt.register_config("rows", SignalConfig(ShardConfig(axis=0)))
with gt.signal.context("rows"):
    x = gt.randn(900, 300)
product = (x.T @ x).sum()
"""


@pytest.mark.parametrize("options", [(), ("--insecure",)], ids=["keys", "insecure"])
def test_processes_send_each_other_their_parts(options):
    code = CONNECT + "print(round(product.item() / x.sum(1).square().sum().item(), 3))\n"
    with cluster(3, *options) as (address, _):
        code = code.replace("sys.argv[1]", f"sys.argv[1], insecure={bool(options)}")
        done = run_python(code, address)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "1.0"


def test_a_worker_that_dies_is_named():
    code = (
        CONNECT
        + """
product.item()
print("ready", flush=True)
sys.stdin.readline()
try:
    (x.T @ x).exp().sum().item()
except gt.WorkerError as error:
    print("'w1'" in str(error))
print(gt.ones(3).sum().item())
"""
    )
    import subprocess
    import sys

    with cluster(3) as (address, processes):
        program = subprocess.Popen(
            [sys.executable, "-c", code, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout.readline() == "ready\n"
        os.kill(processes[2].pid, signals.SIGKILL)
        start = time.monotonic()
        out, _ = program.communicate("\n", timeout=60)
        assert out == "True\n3.0\n" and time.monotonic() - start < 20
