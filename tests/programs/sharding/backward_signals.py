"""Differentiate in a scope with a backward signal; check on which workers the gradients run."""

import gt
from four_workers import register
from gt import ShardConfig, SignalConfig

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
