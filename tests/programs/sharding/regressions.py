"""Compute what once had other results when sharded. Arguments: a name, "sharded" or "unsharded"."""

import sys

import gt
from gt import ShardConfig, SignalConfig

GRID = {"a": 2, "b": 2}
SCOPES = {
    "columns": ShardConfig(mesh=GRID, axis={"b": 0}),
    "batch": ShardConfig(mesh=GRID, axis={"a": 0}),
    "grid": ShardConfig(mesh=GRID, axis={"a": 0, "b": 1}),
    "one": ShardConfig(axis=0, workers=[1]),
    "rows": ShardConfig(axis=0),
    "columns_of_two": ShardConfig(axis=0, workers=[0, 1, 2, 3]),
    "second axis": ShardConfig(axis=1),
}


def bias_on_a_mesh():
    """Differentiate a sharded layer by its bias, with a sharded batch."""
    with gt.signal.context("columns"):
        layer = gt.nn.Linear(6, 8)
    with gt.signal.context("batch"):
        loss = layer(gt.randn(10, 6)).tanh().square().mean()
    loss.backward()
    return [layer.bias.grad[4:]]


def partial_and_sharded():
    """Use sums that are partial over one mesh axis and sharded over the other."""
    with gt.signal.context("grid"):
        x = gt.ones(4, 4) * gt.arange(1, 5).reshape(4, 1)
    return [x.sum(0)[1:], gt.cat([x.sum(0), x.sum(0)]), x.sum(0).cumsum(0)]


def one_worker():
    """Compute in a scope of one worker."""
    with gt.signal.context("one"):
        x = gt.arange(40).reshape(10, 4).float()
    return [x.sum(), gt.cat([x, x]), x[3:], x.T @ x]


def additions_to_partial_sums():
    """Add a few rows or elements to partial sums."""
    with gt.signal.context("rows"):
        a = gt.randn(12, 6)
    with gt.signal.context("columns_of_two"):
        index, rows = gt.tensor([0, 3], dtype=gt.int64), gt.randn(2, 5)
    p = a.T @ gt.signal.tensor(gt.randn(12, 5), "rows")
    q = a.T @ gt.signal.tensor(gt.randn(12, 5), "rows")
    return [p.index_add(0, index, rows), q.scatter_add(0, index.reshape(2, 1), rows[:, :1])]


def softmax_of_float16():
    """Sum many exponentials of float16."""
    with gt.signal.context("second axis"):
        x = gt.zeros(2, 100000, dtype=gt.float16)
    return [x.log_softmax(1)[:, :2], x.softmax(1)[:, :2], x.logsumexp(1)]


def sums_of_integers():
    """Sum integers that cancel, and integers that overflow their dtype."""
    with gt.signal.context("rows"):
        x = gt.tensor([10**9, 1 - 10**9, 0, 0], dtype=gt.int64)
        y = gt.full((8, 4), 300, dtype=gt.int16)
    return [x.sum() / 1, x.sum() * 1.0, (y.T @ y).sum()]


def infinite_quotients():
    """Divide partial sums by zero, and multiply them by infinity."""
    with gt.signal.context("rows"):
        x = gt.zeros(300)
        x[0] = 1
    return [x.sum() / 0, x.sum() * float("inf"), x.sum() / gt.zeros(())]


name, form = sys.argv[1:]
if form == "sharded":
    gt.gpu_workers(4)
    for scope, shard in SCOPES.items():
        gt.register_config(scope, SignalConfig(shard))
gt.manual_seed(0)
for tensor in globals()[name]():
    print(*tensor.double().reshape(-1).tolist())
