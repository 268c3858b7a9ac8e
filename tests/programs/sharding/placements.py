"""Create tensors in scopes; check where they are placed."""

import gt
from four_workers import placement, register

register("rows", axis=0)
register("columns", axis=-1, workers=[2, 0])
register("copies", replicated=True, workers=[1, 3])
register("grid", mesh={"a": 2, "b": 2}, axis={"a": 1, "b": 0})


def made(name, make):
    """Return the placement of a tensor that is created in a scope."""
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
# The scope decides the axis, also where another axis would move fewer bytes: 9 rows are uneven.
x = gt.rand(9, 5)
assert made("rows", lambda: x * 1) == [("Shard(0)", all_four)]
x = gt.signal.tensor(gt.arange(10), name="rows")
assert ("Shard(0)", all_four) in placement(x) and x.tolist() == list(range(10))
