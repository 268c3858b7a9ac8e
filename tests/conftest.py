"""Fixtures for all tests.

The whole suite runs embedded, or, with GT_TEST_SERVER=host:port, on that server.
"""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

import gt

SERVER = os.environ.get("GT_TEST_SERVER")


@pytest.fixture(scope="session", autouse=True)
def connection():
    """Connect, if a server is named."""
    if SERVER:
        gt.connect(SERVER)
    yield


@pytest.fixture(autouse=True)
def seed():
    """Give every test the same random numbers."""
    gt.manual_seed(0)


embedded_only = pytest.mark.skipif(bool(SERVER), reason="about embedded sessions alone")


def run_python(code: str, *args: str, timeout: float = 60, **environment: str):
    """Run code in a new process; give the finished process with its output."""
    env = {**os.environ, **environment}
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)


@contextmanager
def cluster(workers: int = 1, *options: str):
    """Run a server with workers in processes of their own; give the address and processes."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])

    def start(*command: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        line = process.stdout.readline()
        assert line.startswith("gt "), (line, process.stderr.read())
        return process

    processes: list[subprocess.Popen] = []
    try:
        start("gt.server", "-p", port, *options)
        for number in range(workers):
            start("gt.worker", "--host", "localhost", "-p", port, "--id", f"w{number}")
        yield f"localhost:{port}", processes
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.communicate(timeout=20)
