"""Programs, servers and workers as processes of their own, for tests."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import contextmanager

import pytest

SERVER = os.environ.get("GT_TEST_SERVER")

#: About signals and counts themselves, or about equality to the last bit.
unsharded_only = pytest.mark.skipif(
    bool(os.environ.get("GT_TEST_SHARDED")), reason="not while everything is cut over workers"
)

embedded_only = pytest.mark.skipif(bool(SERVER), reason="about embedded sessions alone")

#: Looks at processes by /proc.
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

one_engine_only = pytest.mark.skipif(
    bool(os.environ.get("GT_BACKEND")), reason="the same with every engine"
)

#: A process that was started in the background ignores Ctrl-C from its birth.
HEED_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


#: A function for programs that fork: gives a child's exit code, or kills one that hangs.
WAIT_FOR_CHILD = (
    "def wait(child):\n"
    "    for _ in range(1000):\n"
    "        done, status = os.waitpid(child, os.WNOHANG)\n"
    "        if done: return os.waitstatus_to_exitcode(status)\n"
    "        time.sleep(0.01)\n"
    "    os.kill(child, signal.SIGKILL)\n"
    "    os.waitpid(child, 0)\n"
    "    return 'hangs'\n"
)

#: The beginning of a program on four workers.
ON_FOUR_WORKERS = """
import gt
from gt import ShardConfig, SignalConfig
gt.gpu_workers(4)
def register(name, **shard):
    gt.register_config(name, SignalConfig(ShardConfig(**shard)))
def placement(x):
    return [(copy.placement, copy.workers) for copy in gt.debug.placement(x)]
"""

#: Computes until it is told to end.
LOOP = """
import gt, sys, threading
gt.gpu_workers({workers})
stop = []
threading.Thread(target=lambda: stop.append(sys.stdin.readline()), daemon=True).start()
x = gt.randn(300, 300)
(x + 1).sum().item()
print("at work", flush=True)
while not stop:
    (x @ x).relu().sum().item()
"""


def write_key(path, text: str) -> None:
    """Write a key into a file that nobody else may read: any other is refused."""
    path.touch(mode=0o600)
    path.write_text(text)


def run_python(code: str, *args: str, timeout: float = 60, **environment: str):
    """Run code in a new process; give the finished process with its output."""
    env = {**os.environ, **environment}
    command = [sys.executable, "-c", HEED_CTRL_C + code, *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)


def run_on_four_workers(code: str, **environment: str) -> str:
    """Run code on four workers, without an error; give what it prints."""
    done = run_python(ON_FOUR_WORKERS + code, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or "GT_VERBOSE" in environment, done.stderr
    return done.stdout


def run_gt(*command: str, timeout: float = 60, **environment: str):
    """Run the `gt` command; give the finished process with its output."""
    return subprocess.run(
        [sys.executable, "-m", "gt", *command],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )


@contextmanager
def program(code: str = LOOP.format(workers=1), **environment: str):
    """Run a program that is at work; give its process."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEED_CTRL_C + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        line = process.stdout.readline()
        assert line == "at work\n", (line, process.stderr.read())
        yield process
        _, errors = process.communicate("end\n", timeout=30)
        assert (process.returncode, errors) == (0, "")
    finally:
        process.kill()
        process.communicate()


@contextmanager
def cluster(workers: int = 1, *options: str, worker_options: Sequence[str] = ()):
    """Run a server with workers in processes of their own; give the address and processes."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])

    def start(*command: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        line = process.stdout.readline()
        assert line.startswith("gt "), (line, process.stderr.read())
        return process

    processes: list[subprocess.Popen] = []
    try:
        start("gt.server", "-p", port, *options)
        for number in range(workers):
            name = f"w{number}"
            start("gt.worker", "--host", "localhost", "-p", port, "--id", name, *worker_options)
        yield f"localhost:{port}", processes
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.communicate(timeout=20)
