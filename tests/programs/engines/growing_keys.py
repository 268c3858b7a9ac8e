"""Attend to keys that grow by a row per step; print what the worker compiled."""

import gt

query, key = gt.randn(1, 2, 1, 4), gt.randn(1, 2, 1, 4)
keys = key
for _ in range(64):
    keys = gt.cat([keys, key], 2)
    query = (query @ keys.transpose(2, 3)).softmax(-1) @ keys
query.sum().item()
(worker,) = gt.debug.get_worker_stats().values()
print(worker["compilation"]["cache_misses"], worker["operations"]["compiled"])
