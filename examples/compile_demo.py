"""Marking hot paths: `compile: true` in a configuration marks a scope as worth compiling.

The mark is sent with the instructions. It never changes a result, and engines that do not compile
ignore it.
"""

from pathlib import Path

import gt

gt.load_config(Path(__file__).with_name("config_compile.yaml"))
config = gt.get_signal_config("hot_path")
print("hot_path is to be compiled:", config is not None and config.compile)

x = gt.randn(64, 64)


def step(x: gt.Tensor) -> gt.Tensor:
    """Compute something that repeats."""
    return (x @ x).tanh() * 0.5 + x


plain = x
for _ in range(5):
    plain = step(plain)

marked = x
for _ in range(5):
    with gt.signal.context("hot_path"):
        marked = step(marked)

assert (plain == marked).all()
print("marked and plain agree:", round(marked.mean().item(), 6))
gt.debug.print_worker_stats()
