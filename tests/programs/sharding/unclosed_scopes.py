"""Leave scopes open inside a block; check that the end of the block closes them or raises."""

import four_workers  # noqa: F401
import gt

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
