"""Introspection: the tape, worker statistics, and the instruction log.

GT_INSTRUCTION_LOG=/tmp/gt.log python examples/debug_demo.py
"""

import gt

x = gt.randn(4, 3)
w = gt.randn(3, 2, requires_grad=True)
loss = ((x @ w).sigmoid() - 1).abs().mean()

gt.debug.print_tape()
loss.backward()
print("loss:", round(loss.item(), 4))
gt.debug.print_worker_stats()

# An error that only the worker can detect names the line that issued the operation.
bad = x[gt.tensor([9], dtype=gt.int64)]
try:
    bad.numpy()
except gt.WorkerError as error:
    print("caught:", error)
