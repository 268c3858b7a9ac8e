"""Use many features in an endless loop. Arguments: the server's address, and a folder."""

import itertools
import sys

import gt
import numpy as np

gt.connect(sys.argv[1])
folder = sys.argv[2]
kept = gt.randn(512, 512)
for step in itertools.count():
    if step % 100 == 0:
        print("step", step, flush=True)
    rows = 1 + step * 7 % 40
    x = gt.randn(rows, 16)
    y = (x @ gt.randn(16, 8)).relu()[:, : 1 + step % 8]
    y.sum().item()
    view = kept[step % 512, :rows]
    kept = kept * 0.99 + view.mean()
    sent = gt.from_numpy(np.full((rows, 1000), float(step), dtype="float32"))
    assert sent.numpy()[0, 0] == step
    if step % 20 == 0:
        large = gt.ones(1 << 20)
        assert large.numpy().sum() == 1 << 20
        try:
            gt.ones(2, 3) @ gt.ones(2, 3)
        except ValueError:
            pass
    if step % 200 == 0:
        gt.status()
        gt.checkpoint.save(folder + "/saved", {"kept": kept}).wait()
        loaded = gt.checkpoint.load(folder + "/saved")[0]["kept"]
        assert gt.equal(loaded, kept)
