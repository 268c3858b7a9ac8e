"""Sharding over workers of a server."""

import os
import signal as signals
import time

import pytest
from processes import cluster, run_program, start_program, unsharded_only

pytestmark = unsharded_only


@pytest.mark.parametrize("options", [(), ("--insecure",)], ids=["keys", "insecure"])
def test_workers_exchange_their_shards(options):
    with cluster(3, *options) as (address, _):
        arguments = ["insecure"] if options else []
        done = run_program("sharding/product_on_server", address, "check", *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "1.0"


def test_a_worker_that_dies_is_named():
    with cluster(3, "--lineage", "0") as (address, processes):
        program = start_program("sharding/product_on_server", address, "lose")
        assert program.stdout.readline() == "ready\n"
        os.kill(processes[2].pid, signals.SIGKILL)
        start = time.monotonic()
        out, _ = program.communicate("\n", timeout=60)
        assert out == "True\n3.0\n" and time.monotonic() - start < 20
