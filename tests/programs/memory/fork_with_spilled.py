"""Fork while tensors are spilled; the child and then the parent read them again."""

import os

import gt

xs = [gt.full((2_500_000,), float(i)) + 0 for i in range(20)]
print(sum(x.sum().item() for x in xs), gt.status().workers[0]["spilled_bytes"] > 0, flush=True)
child = os.fork()
if child == 0:
    more = [x + 1 for x in xs]
    print(sum(x.sum().item() for x in more), flush=True)
    del xs, more
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
print(sum(x.sum().item() for x in xs))
