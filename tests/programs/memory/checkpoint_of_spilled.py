"""Save tensors of which some are spilled, and load them again. Argument: the checkpoint."""

import sys

import gt

xs = {f"x{i}": gt.full((2_500_000,), float(i)) + 0 for i in range(20)}
print(sum(x.max().item() for x in xs.values()))
gt.checkpoint.save(sys.argv[1], xs).wait()
loaded = gt.checkpoint.load(sys.argv[1])[0]
print(sum(loaded[name].sum().item() for name in xs))
