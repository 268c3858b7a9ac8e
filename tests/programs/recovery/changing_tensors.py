"""Change eight tensors of 1 MB 2000 times; print why they cannot be restored, or "kept"."""

import sys

import gt

gt.connect(sys.argv[1])
xs = [gt.ones(250_000) for _ in range(8)]
for step in range(2000):
    xs[step % 8] = xs[step % 8] * 1.5 + step
    if step % 8 == 7:
        xs[0].sum().item()
print(gt.status().sessions[0]["unkept"] or "kept", flush=True)
