"""Multiply sharded matrices on a server. Arguments: the address, and "check" or "lose"."""

import sys

import gt
from gt import ShardConfig, SignalConfig

address, purpose, *options = sys.argv[1:]
gt.connect(address, insecure="insecure" in options)
gt.register_config("rows", SignalConfig(ShardConfig(axis=0)))
with gt.signal.context("rows"):
    x = gt.randn(900, 300)
product = (x.T @ x).sum()
if purpose == "check":
    print(round(product.item() / x.sum(1).square().sum().item(), 3))
else:
    # The test kills a worker before it writes a line.
    product.item()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        (x.T @ x).exp().sum().item()
    except gt.WorkerError as error:
        print("'w1'" in str(error))
    print(gt.ones(3).sum().item())
