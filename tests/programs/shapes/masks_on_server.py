"""Use masks of a million elements. Arguments: the server's address, "sharded" or "unsharded"."""

import sys

import gt
import numpy as np

gt.connect(sys.argv[1])
is_sharded = sys.argv[2] == "sharded"
values = np.arange(1_000_000, dtype="float32")
gt.register_config("sharded", gt.SignalConfig(gt.ShardConfig(axis=0)))
with gt.signal.context("sharded" if is_sharded else "plain"):
    x = gt.from_numpy(values).clone()
    mask = x % 3 == 0
if is_sharded:
    assert len(gt.debug.placement(mask)[0].workers) == 2
assert x[mask].shape == (333334,)
total = values[::3].sum(dtype="float64")
assert abs(x[mask].sum().item() - total) < 1e-4 * total
assert mask.nonzero()[-1].item() == 999999
assert (x % 10).unique().tolist() == list(range(10))
assert x.masked_select(mask)[5].item() == 15
x[mask] = gt.arange(333334).float()
assert x[3].item() == 1 and x[4].item() == 4
