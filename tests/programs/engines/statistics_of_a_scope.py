"""Compute in a scope that is to be compiled; print the statistics, and what was compiled."""

import gt
import hot_loop

gt.register_config("hot", gt.SignalConfig(compile=True))
x = gt.ones(16, 16)
for step in range(30):
    with gt.signal.context("hot"):
        x = ((x * 0.5 + 1).tanh() @ x).sigmoid()
    gt.ones(step + 1).sum().item()  # varies, so that the loop as a whole does not become hot
x.sum().item()
gt.debug.print_worker_stats()
print(hot_loop.compiled())
