"""Fetch a sharded tensor; check that explain lists the fetch with its line."""

import sys

import gt
from four_workers import register

register("rows", axis=0)
with gt.signal.context("rows"):
    a = gt.ones(8, 8)
with gt.debug.explain(quiet=True) as explanation:
    here, _ = sys._getframe().f_lineno, a.numpy()
step = explanation.steps[0]
assert step.operation == "fetch" and step.line.endswith(f":{here}"), step
assert [operand.placement for operand in step.operands] == ["Shard(0)"], step
