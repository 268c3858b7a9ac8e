"""Run a hot loop; print which runs used compiled code."""

import gt
import recording_engine as recording

x = gt.ones(1000)
for _ in range(30):
    x = (x * 0.5).exp() - 1
    x.sum().item()
print(recording.RUNS)
