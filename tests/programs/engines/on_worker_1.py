"""Compute tanh on worker 1 of a server, then something else. Argument: the address."""

import sys

import gt

gt.connect(sys.argv[1])
gt.register_config("bad", gt.SignalConfig(gt.ShardConfig(axis=0, workers=[1])))
with gt.signal.context("bad"):
    y = gt.ones(4).tanh()
try:
    print(y.tolist())
except gt.WorkerError as error:
    print(error)
print((gt.ones(2) + 1).tolist())
