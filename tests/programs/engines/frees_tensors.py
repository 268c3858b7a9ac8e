"""Print whether the engine holds no more arrays than the program's tensors need."""

import gt
import recording_engine as recording

x = gt.ones(1000)
kept = []
for step in range(200):
    x = x * 0.5 + 1
    if step % 50 == 0:
        kept.append(x)
    x[:1].sum().item()
print(round(x.sum().item()), recording.live() <= 40)
del x, kept
gt.ones(1).item()
print(recording.live() <= 4)
