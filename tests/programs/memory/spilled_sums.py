"""Compute with 300 MB where 100 MB are allowed; print sums. Argument: the address of a server."""

import sys

import gt

if sys.argv[1:]:
    gt.connect(sys.argv[1])
xs = [gt.full((2_500_000,), float(i)) + 0 for i in range(30)]
print(sum(x.sum().item() for x in xs))
total = gt.zeros(2_500_000)
for _ in range(3):
    for x in xs:
        total = total * 0.5 + x
print(total[0].item())
status = gt.status()
print(status.workers[0]["bytes"] <= 100_000_000, status.sessions[0]["spilled_bytes"] >= 200_000_000)
