"""Signals: names for parts of a program, whose meaning a configuration defines.

A name without a configuration is ignored, so the same code runs anywhere.
"""

from pathlib import Path

import gt

gt.load_config(Path(__file__).with_name("config_sharding.yaml"))

x = gt.randn(128, 64)
w = gt.randn(64, 32, requires_grad=True)

# Operations inside the scope carry the signal; their gradients carry `backward_layer1`.
with gt.signal.context("forward_layer1"):
    y = (x @ w).relu()
    print("inside:", gt.signal.current_signal(), "/", gt.signal.current_backward_signal())

# Place a single tensor.
x_placed = gt.signal.tensor(x, name="data_parallel")
assert (x_placed == x).all()

# Enter and exit explicitly; scopes may be nested.
gt.signal.enter("data_parallel")
loss = (y * y).mean()
gt.signal.exit("data_parallel")

loss.backward()
assert w.grad is not None
print("loss:", round(loss.item(), 2), " gradient:", w.grad.shape)

# The tape records the signal of each operation.
gt.debug.print_tape()
z = (x @ w).sum()
gt.debug.print_tape()
