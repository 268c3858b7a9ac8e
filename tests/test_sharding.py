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
for wrong in (
    dict(workers=[]), dict(workers=[1, 1]), dict(mesh={"a": 2}, axis={"b": 0}),
    dict(mesh={"a": 2}), dict(mesh={"a": 2, "b": 2, "c": 1}, axis={"a": 0}), dict(mesh={}, axis={}),
    dict(mesh={"a": 0}, axis={"a": 0}), dict(mesh={"a": "2"}, axis={"a": 0}), dict(mesh=[2, 2]),
    dict(mesh={"a": 2.5}, axis={}), dict(mesh={"a": 2}, axis={"a": "0"}), dict(axis=True),
    dict(mesh={"a": 2, "b": 2}, axis={"a": 0, "b": 0}), dict(replicated="no"),
    dict(workers=[True]), dict(workers=[2**40]), dict(mesh={"a": 2, "b": 2}, axis={}, workers=[0]),
):
    message(lambda: register("wrong", **wrong), (ValueError, TypeError))
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


def test_nested_looks_do_not_end_the_outer_ones():
    run("""
register("dp", axis=0)
with gt.debug.explain(quiet=True) as outer:
    a = gt.ones(3)
    with gt.debug.explain(quiet=True) as inner:
        b = gt.ones(3)
    c = gt.ones(4)
assert (len(outer.steps), len(inner.steps)) == (3, 1), outer
with gt.signal.context("dp"):
    x = gt.randn(64, 64)
with gt.debug.strict(100):
    with gt.debug.strict(10**9):
        pass
    y = x.argmax(0)
try:
    y.sum().item()
except gt.WorkerError as error:
    assert "strict" in str(error)
else:
    raise AssertionError("strict was off")
for limit in (-1, 1.5):
    try:
        with gt.debug.strict(limit):
            raise AssertionError
    except ValueError as error:
        assert str(limit) in str(error)
""")


def test_fetches_are_explained_with_their_line():
    run("""
import sys
register("rows", axis=0)
with gt.signal.context("rows"):
    a = gt.ones(8, 8)
with gt.debug.explain(quiet=True) as explanation:
    here, _ = sys._getframe().f_lineno, a.numpy()
step = explanation.steps[0]
assert step.operation == "fetch" and step.line.endswith(f":{here}"), step
assert [operand.placement for operand in step.operands] == ["Shard(0)"], step
""")


def test_a_scope_without_placement_leaves_the_one_around_it():
    run("""
register("dp", axis=0)
gt.register_config("compiled", SignalConfig(compile=True))
with gt.signal.context("dp"):
    for inner in ("compiled", "unknown"):
        with gt.signal.context(inner):
            assert gt.signal.current_signal() == inner
            assert placement(gt.ones(8, 8)) == [("Shard(0)", [0, 1, 2, 3])]
""")


def test_an_error_closes_the_scopes_that_it_leaves_open():
    run("""
try:
    with gt.signal.context("a"):
        gt.signal.enter("b")
        raise KeyError("mine")
except KeyError:
    pass
assert gt.signal.current_signal() is None
try:
    with gt.signal.context("a"):
        gt.signal.enter("b")
except RuntimeError as error:
    assert "'b'" in str(error)
else:
    raise AssertionError("no error")
assert gt.signal.current_signal() is None
""")


def test_backward_signals_must_be_known_when_told_to_be_strict():
    code = "register('known', axis=0)\n"
    code += "gt.register_config('a', SignalConfig(ShardConfig(axis=0), 'knwon'))\n"
    code += "with gt.signal.context('a'): gt.ones(2)\n"
    assert run(code) == ""
    refused = run_python(START + code, GT_STRICT="1")
    assert refused.returncode == 1 and "did you mean 'known'?" in refused.stderr


#: Programs that once gave other numbers when sharded; each prints what it computes.
REGRESSIONS = {
    "gradients of a bias on a mesh": """
with gt.signal.context("columns"):
    layer = gt.nn.Linear(6, 8)
with gt.signal.context("batch"):
    loss = layer(gt.randn(10, 6)).tanh().square().mean()
loss.backward()
show(layer.bias.grad[4:])
""",
    "partial over one axis, cut over the other": """
with gt.signal.context("grid"):
    x = gt.ones(4, 4) * gt.arange(1, 5).reshape(4, 1)
show(x.sum(0)[1:], gt.cat([x.sum(0), x.sum(0)]), x.sum(0).cumsum(0))
""",
    "a scope of one worker": """
with gt.signal.context("one"):
    x = gt.arange(40).reshape(10, 4).float()
show(x.sum(), gt.cat([x, x]), x[3:], x.T @ x)
""",
    "adding at few places to partial sums": """
with gt.signal.context("rows"):
    a = gt.randn(12, 6)
with gt.signal.context("columns_of_two"):
    index, rows = gt.tensor([0, 3], dtype=gt.int64), gt.randn(2, 5)
p = a.T @ gt.signal.tensor(gt.randn(12, 5), "rows")
q = a.T @ gt.signal.tensor(gt.randn(12, 5), "rows")
show(p.index_add(0, index, rows), q.scatter_add(0, index.reshape(2, 1), rows[:, :1]))
""",
    "softmax of many halves": """
with gt.signal.context("cut"):
    x = gt.zeros(2, 100000, dtype=gt.float16)
show(x.log_softmax(1)[:, :2], x.softmax(1)[:, :2], x.logsumexp(1))
""",
    "sums of integers": """
with gt.signal.context("rows"):
    x = gt.tensor([10**9, 1 - 10**9, 0, 0], dtype=gt.int64)
    y = gt.full((8, 4), 300, dtype=gt.int16)
show(x.sum() / 1, x.sum() * 1.0, (y.T @ y).sum())
""",
    "infinite quotients": """
with gt.signal.context("rows"):
    x = gt.zeros(300)
    x[0] = 1
show(x.sum() / 0, x.sum() * float("inf"), x.sum() / gt.zeros(()))
""",
}
SCOPES = """
GRID = {"a": 2, "b": 2}
register("columns", mesh=GRID, axis={"b": 0})
register("batch", mesh=GRID, axis={"a": 0})
register("grid", mesh=GRID, axis={"a": 0, "b": 1})
register("one", axis=0, workers=[1])
register("rows", axis=0)
register("columns_of_two", axis=0, workers=[0, 1, 2, 3])
register("cut", axis=1)
"""
SHOW = """
gt.manual_seed(0)
def show(*tensors):
    for tensor in tensors:
        print(*tensor.double().reshape(-1).tolist())
"""


@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_same_numbers_again(name):
    plain = run_python("import gt\n" + SHOW + REGRESSIONS[name])
    assert plain.returncode == 0, plain.stderr
    cut = run(SCOPES + SHOW + REGRESSIONS[name])
    for one, other in zip(plain.stdout.split(), cut.split(), strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-3, abs=1e-6, nan_ok=True), cut


def test_strict_composites_fail_alone():
    run("""
register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.randn(12, 1000)
with gt.debug.strict(100):
    results = [x.var(0), x.std(0), x.logsumexp(0), x.softmax(0)]
for result in results:
    try:
        result.sum().item()
    except gt.WorkerError as error:
        assert "strict" in str(error)
assert x.sum().isfinite().item()
""")


@pytest.mark.parametrize(
    "optimizer", ["SGD(p, lr=0.1)", "SGD(p, lr=0.1, momentum=0.9)", "AdamW(p)"]
)
def test_updates_lie_as_their_parameters_and_sums_are_planned(optimizer):
    """Replicated parameters stay so; strict mode takes what adding gradients up needs."""
    run(f"""
register("copies", replicated=True)
register("data", axis=0)
with gt.signal.context("copies"):
    layer = gt.nn.Linear(64, 32)
p = layer.parameters()
optimizer = gt.optim.{optimizer}
for step in range(3):
    with gt.signal.context("data"):
        x = gt.randn(128, 64)
    with gt.debug.explain(quiet=True) as explanation, gt.debug.strict(0):
        with gt.signal.context("data"):
            loss = layer(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert layer.weight.sum().isfinite().item()
    assert placement(layer.weight) == [("Replicate", [0, 1, 2, 3])], step
# Each of n workers needs all gradients of W floats, added up: 2 (n - 1) W.
best = 2 * 3 * (64 * 32 + 32) * 4
assert best <= explanation.moved_bytes < best + 1000, explanation
""")


def test_slices_move_what_is_asked_for():
    run("""
register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.arange(400 * 300).reshape(400, 300).float()
values = x.numpy()
row = 300 * 4
# What is there stays, unless one worker would have most of it.
for part, limit in [
    (lambda x: x[0, 0], 3 * 4), (lambda x: x[0], 3 * row), (lambda x: x[:32], 24 * row),
    (lambda x: x[50:390:7], 0), (lambda x: x[20:380, ::2], 0), (lambda x: x[399], 3 * row),
]:
    with gt.debug.explain(quiet=True) as explanation:
        y = part(x)
    assert explanation.moved_bytes <= limit, explanation
    assert (y.numpy() == part(values)).all()
    assert max(explanation.memory.values()) < 1.5 * 400 * row, explanation
""")
