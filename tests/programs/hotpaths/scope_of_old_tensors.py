"""Use tensors in a compiled scope that are older than the loop; print the hot instructions."""

import gt

gt.register_config("hot", gt.SignalConfig(compile=True))
x, w = gt.ones(4, 4), gt.ones(4, 4)
for _ in range(3):
    with gt.signal.context("hot"):
        y = ((x @ w).relu() * 2 + 1).sum()
    y.item()
print(list(gt.debug.get_worker_stats().values())[0]["hotpath"]["hot_instructions"])
