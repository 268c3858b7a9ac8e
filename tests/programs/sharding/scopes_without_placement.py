"""Enter scopes without a placement inside a sharded scope; check that tensors are sharded."""

import gt
from four_workers import placement, register

register("dp", axis=0)
gt.register_config("compiled", gt.SignalConfig(compile=True))
with gt.signal.context("dp"):
    for inner in ("compiled", "unknown"):
        with gt.signal.context(inner):
            assert gt.signal.current_signal() == inner
            assert placement(gt.ones(8, 8)) == [("Shard(0)", [0, 1, 2, 3])]
