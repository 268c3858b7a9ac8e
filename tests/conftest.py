"""Fixtures for all tests.

The whole suite runs embedded; on a server with GT_TEST_SERVER=host:port, or on one that is
started for it with GT_TEST_SERVER=local; and with everything cut over three workers with
GT_TEST_SHARDED=1.
"""

import os
import re
import sys
from contextlib import nullcontext

import gt
import pytest
from processes import cluster, program, run_gt

# Tests leave nothing in the user's caches, and find nothing there.
os.environ.setdefault("GT_COMPILE_CACHE", "off")

# Tests that compare with PyTorch find it as it is; those of the device import `gt.torch`.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

SERVER = os.environ.get("GT_TEST_SERVER")
SHARDED = os.environ.get("GT_TEST_SHARDED")


def pytest_runtest_setup():
    """Allow PyTorch's settings to be changed, which its test utilities forbid once imported."""
    if backends := sys.modules.get("torch.backends"):
        backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True


@pytest.fixture(scope="session", autouse=True)
def connection():
    """Connect, if a server is asked for."""
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
    """Give every test the same random numbers."""
    gt.manual_seed(0)


@pytest.fixture(autouse=True)
def scope():
    """Cut everything along the first axis, if that is asked for."""
    if SHARDED:
        gt.register_config("suite", gt.SignalConfig(gt.ShardConfig(axis=0)))
    with gt.signal.context("suite") if SHARDED else nullcontext():
        yield


@pytest.fixture(scope="session")
def trace_file(tmp_path_factory):
    """Give the path of a trace, written by `gt trace`."""
    folder = tmp_path_factory.mktemp("traces")
    with program() as process:
        done = run_gt("trace", "-s", "0.5", "--pid", str(process.pid), "--dir", str(folder))
    assert (done.returncode, done.stderr) == (0, ""), done
    (path,) = folder.iterdir()
    assert re.fullmatch(r"trace_\d{8}_\d{6}\.log", path.name)
    assert str(path) in done.stdout and "events of process" in done.stdout
    return path
