"""Publishes tensors, or computes with them: ADDRESS publish|read."""

import sys

import gt

address, part = sys.argv[1:]
gt.connect(address)
if part == "publish":
    gt.publish("base", {"weight": gt.arange(4.0), "bias": gt.ones(4)}, to="all")
else:
    base = gt.shared("base")
    print((base["weight"] ** 2).sum().item(), (2 * base["weight"]).tolist())
