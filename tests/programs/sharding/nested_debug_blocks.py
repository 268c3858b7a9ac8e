"""Nest blocks of explain and of strict; check that the inner block does not end the outer one."""

import gt
from four_workers import register

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
