"""Programs that once gave other numbers when they were sharded."""

import pytest
from processes import run_on_four_workers, run_python, unsharded_only

pytestmark = unsharded_only

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
    cut = run_on_four_workers(SCOPES + SHOW + REGRESSIONS[name])
    for one, other in zip(plain.stdout.split(), cut.split(), strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-3, abs=1e-6, nan_ok=True), cut
