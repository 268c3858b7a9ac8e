"""Compute with tensors of 100 lengths; print which functions the engine was asked for."""

import gt
import recording_engine as recording

total = 0
for length in range(1, 101):
    x = gt.ones(length)
    total += ((x + x) * 2.5).sum().item()
print(total)
print(sorted(recording.ASKED))
print(recording.PLANS)
