"""Slice a sharded tensor; check the values, the moved bytes and the memory of the workers."""

import gt
from four_workers import register

register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.arange(400 * 300).reshape(400, 300).float()
values = x.numpy()
row = 300 * 4
# Rows stay on their workers, unless one worker would hold most of the result.
for part, limit in [
    (lambda x: x[0, 0], 3 * 4),
    (lambda x: x[0], 3 * row),
    (lambda x: x[:32], 24 * row),
    (lambda x: x[50:390:7], 0),
    (lambda x: x[20:380, ::2], 0),
    (lambda x: x[399], 3 * row),
]:
    with gt.debug.explain(quiet=True) as explanation:
        y = part(x)
    assert explanation.moved_bytes <= limit, explanation
    assert (y.numpy() == part(values)).all()
    assert max(explanation.memory.values()) < 1.5 * 400 * row, explanation
