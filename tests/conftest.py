"""Fixtures for all tests.

The suite runs embedded; on a server with GT_TEST_SERVER=host:port, or on one that the suite starts
with GT_TEST_SERVER=local; and with every tensor sharded over three workers with GT_TEST_SHARDED=1.
"""

import os
import re
import sys
from contextlib import nullcontext

import gt
import pytest
from processes import cluster, program, run_gt

#: Programs that tests run as processes; pytest must not import them.
collect_ignore = ["programs"]

# Tests neither read nor write the user's caches.
os.environ.setdefault("GT_COMPILE_CACHE", "off")

# Tests that compare with PyTorch use it without the device; tests of the device import `gt.torch`.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

SERVER = os.environ.get("GT_TEST_SERVER")
SHARDED = os.environ.get("GT_TEST_SHARDED")


def pytest_runtest_setup():
    """Let tests change PyTorch's settings, which PyTorch's test utilities freeze on import."""
    if backends := sys.modules.get("torch.backends"):
        backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True


@pytest.fixture(scope="session", autouse=True)
def connection():
    """Connect to the server that GT_TEST_SERVER names, if any."""
    if SHARDED:
        gt.gpu_workers(3)
    if SERVER == "local":
        with cluster(workers=2) as (address, _):
            gt.connect(address)
            yield
            gt.disconnect()
    else:
        if SERVER:
            gt.connect(SERVER)
        yield


@pytest.fixture(autouse=True)
def seed():
    """Seed the random numbers of every test."""
    gt.manual_seed(0)


@pytest.fixture(autouse=True)
def scope():
    """Shard every tensor along its first axis if GT_TEST_SHARDED is set."""
    if SHARDED:
        gt.register_config("suite", gt.SignalConfig(gt.ShardConfig(axis=0)))
    with gt.signal.context("suite") if SHARDED else nullcontext():
        yield


@pytest.fixture(scope="session")
def trace_file(tmp_path_factory):
    """Return the path of a trace that `gt trace` has written."""
    folder = tmp_path_factory.mktemp("traces")
    with program() as process:
        done = run_gt("trace", "-s", "0.5", "--pid", str(process.pid), "--dir", str(folder))
    assert (done.returncode, done.stderr) == (0, ""), done
    (path,) = folder.iterdir()
    assert re.fullmatch(r"trace_\d{8}_\d{6}\.log", path.name)
    assert str(path) in done.stdout and "events of process" in done.stdout
    return path
