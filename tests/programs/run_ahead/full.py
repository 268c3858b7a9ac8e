"""Create tensors of a third of the memory each. Argument: the address of a server, if any."""

import sys

import gt

if sys.argv[1:]:
    gt.connect(sys.argv[1])
held = []
try:
    for _ in range(8):
        held.append(gt.ones(8 << 20))
    print(held[-1].sum().item())
except gt.WorkerError as error:
    print("needs 33.6 MB" in str(error))
del held
print(gt.ones(3).sum().item())
