"""Sharding over workers in processes of their own."""

import os
import signal as signals
import subprocess
import sys
import time

import pytest
from processes import cluster, run_python, unsharded_only

pytestmark = unsharded_only

CONNECT = """
import gt, sys
from gt import ShardConfig, SignalConfig
gt.connect(sys.argv[1])
gt.register_config("rows", SignalConfig(ShardConfig(axis=0)))
with gt.signal.context("rows"):
    x = gt.randn(900, 300)
product = (x.T @ x).sum()
"""


@pytest.mark.parametrize("options", [(), ("--insecure",)], ids=["keys", "insecure"])
def test_processes_send_each_other_their_parts(options):
    code = CONNECT + "print(round(product.item() / x.sum(1).square().sum().item(), 3))\n"
    with cluster(3, *options) as (address, _):
        code = code.replace("sys.argv[1]", f"sys.argv[1], insecure={bool(options)}")
        done = run_python(code, address)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "1.0"


def test_a_worker_that_dies_is_named():
    code = (
        CONNECT
        + """
product.item()
print("ready", flush=True)
sys.stdin.readline()
try:
    (x.T @ x).exp().sum().item()
except gt.WorkerError as error:
    print("'w1'" in str(error))
print(gt.ones(3).sum().item())
"""
    )
    with cluster(3, "--lineage", "0") as (address, processes):
        program = subprocess.Popen(
            [sys.executable, "-c", code, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout.readline() == "ready\n"
        os.kill(processes[2].pid, signals.SIGKILL)
        start = time.monotonic()
        out, _ = program.communicate("\n", timeout=60)
        assert out == "True\n3.0\n" and time.monotonic() - start < 20
