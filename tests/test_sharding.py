"""Sharding from Python: where tensors lie, and what moves for it."""

import pytest
from processes import run_on_four_workers, run_python, unsharded_only

pytestmark = unsharded_only


def test_what_is_made_in_a_scope_lies_there():
    run_on_four_workers("""
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
# The scope says along which axis, also where less would move along another: nine rows are uneven.
x = gt.rand(9, 5)
assert made("rows", lambda: x * 1) == [("Shard(0)", all_four)]
x = gt.signal.tensor(gt.arange(10), name="rows")
assert ("Shard(0)", all_four) in placement(x) and x.tolist() == list(range(10))
""")


def test_configurations_change_at_run_time():
    run_on_four_workers("""
for workers in ([0, 1], [3, 2, 1]):
    register("scope", axis=0, workers=workers)
    with gt.signal.context("scope"):
        assert placement(gt.ones(6)) == [("Shard(0)", workers)]
gt.get_config().clear()
with gt.signal.context("scope"):
    assert placement(gt.ones(6)) == [("Replicate", [0])]
""")


def test_a_scope_without_placement_leaves_the_one_around_it():
    run_on_four_workers("""
register("dp", axis=0)
gt.register_config("compiled", SignalConfig(compile=True))
with gt.signal.context("dp"):
    for inner in ("compiled", "unknown"):
        with gt.signal.context(inner):
            assert gt.signal.current_signal() == inner
            assert placement(gt.ones(8, 8)) == [("Shard(0)", [0, 1, 2, 3])]
""")


def test_gradients_run_where_the_configuration_says():
    run_on_four_workers("""
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


@pytest.mark.parametrize(
    "optimizer", ["SGD(p, lr=0.1)", "SGD(p, lr=0.1, momentum=0.9)", "AdamW(p)"]
)
def test_updates_lie_as_their_parameters_and_sums_are_planned(optimizer):
    """Replicated parameters stay so; strict mode takes what adding gradients up needs."""
    run_on_four_workers(f"""
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
    run_on_four_workers("""
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


def test_large_tensors_are_cut_unasked():
    code = """
large, small = gt.randn(1024, 512), gt.randn(16, 16)
assert placement(large) == [("Shard(0)", [0, 1, 2, 3])], placement(large)
assert placement(small) == [("Replicate", [0])]
product = large.T @ large
print(product.shape, round((product - product.T).abs().max().item(), 3))
"""
    assert run_on_four_workers(code, GT_AUTO_SHARD="1") == "(512, 512) 0.0\n"
    assert "Shard(0)" in run_on_four_workers("print(placement(gt.ones(64)))", GT_AUTO_SHARD="100")
    assert "ignored" in run_python("import gt; gt.ones(1).item()", GT_AUTO_SHARD="many").stderr
