"""Train replicated parameters on sharded data. Argument: the optimizer, an expression of p."""

import sys

import gt
from four_workers import placement, register

register("copies", replicated=True)
register("data", axis=0)
with gt.signal.context("copies"):
    layer = gt.nn.Linear(64, 32)
optimizer = eval(f"gt.optim.{sys.argv[1]}", {"gt": gt, "p": layer.parameters()})
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
# An all_reduce of W floats over n workers moves 2 (n - 1) W of them.
best = 2 * 3 * (64 * 32 + 32) * 4
assert best <= explanation.moved_bytes < best + 1000, explanation
