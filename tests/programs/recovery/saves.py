"""Save a checkpoint and rename it at each line of input. Arguments: the address, the checkpoint."""

import sys
from pathlib import Path

import gt

gt.connect(sys.argv[1])
x = gt.arange(6.0)
saved = Path(sys.argv[2])
for _ in sys.stdin:
    gt.checkpoint.save(saved, {"x": x}).wait()
    x = x + 1
    saved.rename(saved.with_name(f"moved-{x[0].item():.0f}"))
    print(x.sum().item(), flush=True)
