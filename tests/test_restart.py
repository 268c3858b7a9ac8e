"""A server with `--state` is killed and started again: sessions go on, and numbers stay the same."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import cluster, embedded_only, one_engine_only, run_python, unsharded_only
from training import SHARDED, TRAINING, Training, undisturbed

# They start servers of their own.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


def start_again(address: str, state: Path, *options: str) -> subprocess.Popen:
    """Start a server at an address again, from its state."""
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "gt.server", "--host", "localhost", "--port", port]
    command += ["--state", str(state), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("gt server"), (line, server.stderr.read())
    return server


def kill(process: subprocess.Popen) -> str:
    """Kill a process; give what it wrote to stderr."""
    process.kill()
    return process.communicate()[1] or ""


@pytest.mark.parametrize(
    ("code", "workers"), [(TRAINING, 1), (TRAINING, 2), (SHARDED, 2)], ids=["one", "two", "cut"]
)
def test_training_goes_on_with_the_same_numbers_when_the_server_is_killed(code, workers, tmp_path):
    steps = 1500
    expected = undisturbed(code, workers, steps)
    with cluster(workers, "--state", str(tmp_path)) as (address, processes):
        training = Training(code, address, steps)
        for step in (200, 700, 1200):
            training.wait_for(step)
            kill(processes.pop(0))
            processes.insert(0, start_again(address, tmp_path))
        assert training.end() == expected
    assert training.longest_gap() < 10
    assert all("was lost" in line or "again" in line for line in training.errors), training.errors
