"""Change a scope's configuration at run time; check the placements of new tensors."""

import gt
from four_workers import placement, register

for workers in ([0, 1], [3, 2, 1]):
    register("scope", axis=0, workers=workers)
    with gt.signal.context("scope"):
        assert placement(gt.ones(6)) == [("Shard(0)", workers)]
gt.get_config().clear()
with gt.signal.context("scope"):
    assert placement(gt.ones(6)) == [("Replicate", [0])]
