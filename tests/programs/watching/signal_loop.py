"""Compute in a scope on two workers, too slowly for a hot path, until a line is read."""

import time

import gt
from loop import start

lines = start("2")
gt.register_config("part one", gt.SignalConfig(gt.ShardConfig(axis=0)))
print("at work", flush=True)
while not lines:
    with gt.signal.context("part one"):
        y = gt.randn(64, 64).exp()
    y.sum().item()
    time.sleep(0.02)
