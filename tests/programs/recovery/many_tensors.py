"""Change many tensors of 4 MB, then check them. Arguments: the address, their number, seconds."""

import sys
import time

import gt

gt.connect(sys.argv[1])
count, until = int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
xs = [gt.full((1_000_000,), float(i)) + 0 for i in range(count)]
steps = 0
while time.monotonic() < until:
    xs[steps % count] = xs[steps % count] + 1
    steps += 1
    if steps % 10 == 0:
        xs[0].sum().item()
expected = count * (count - 1) / 2 + steps
reason = gt.status().sessions[0]["unkept"]
is_on_disk = sum(worker["spilled_bytes"] for worker in gt.status().workers) > 0
print(reason or "kept", is_on_disk, flush=True)
# The test may kill a worker before it writes a line.
sys.stdin.readline()
is_even = all(x.min().item() == x.max().item() for x in xs)
print(sum(x[0].item() for x in xs) == expected and is_even)
