"""Explain a reduction of a sharded tensor; check what explain lists, and print an explanation."""

import gt
from four_workers import register

register("rows", axis=0)
x = gt.signal.tensor(gt.randn(64, 8), name="rows")
with gt.debug.explain() as explanation:
    x.argmax(0).sum().item()
gather = explanation.moves[0]
assert gather.collective in ("all_gather", "all_to_all") and gather.source.placement == "Shard(0)"
assert explanation.moved_bytes >= gather.bytes > 0 and "argmax" in gather.reason
assert set(explanation.memory) == {0, 1, 2, 3}
gt.debug.explain(lambda y: y + 1, x)
