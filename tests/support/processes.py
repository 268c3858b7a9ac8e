"""Programs, servers and workers that tests run as processes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVER = os.environ.get("GT_TEST_SERVER")

#: The folder of the programs that tests run. The name of a program is "AREA/NAME", of the file
#: tests/programs/AREA/NAME.py.
PROGRAMS = Path(__file__).resolve().parents[1] / "programs"

#: For tests that check signals, count tensors or compare bits.
unsharded_only = pytest.mark.skipif(
    bool(os.environ.get("GT_TEST_SHARDED")), reason="not while every tensor is sharded"
)

embedded_only = pytest.mark.skipif(bool(SERVER), reason="only for embedded sessions")

#: For tests that read /proc.
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

one_engine_only = pytest.mark.skipif(
    bool(os.environ.get("GT_BACKEND")), reason="does not depend on the engine"
)

#: Restores the handler of Ctrl-C, which a process that is started in the background ignores.
HONOUR_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


#: The beginning of a short program on four workers; longer ones import this module.
ON_FOUR_WORKERS = (PROGRAMS / "sharding" / "four_workers.py").read_text()


def write_key(path, text: str) -> None:
    """Write a key to a file that only its owner may read; GT refuses other files."""
    path.touch(mode=0o600)
    path.write_text(text)


def run_python(code: str, *args: str, timeout: float = 60, **environment: str):
    """Run code in a new process; return the completed process with its output."""
    env = {**os.environ, **environment}
    command = [sys.executable, "-c", HONOUR_CTRL_C + code, *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)


def run_on_four_workers(code: str, **environment: str) -> str:
    """Run code on four workers; return its output. It must end without errors and warnings."""
    done = run_python(ON_FOUR_WORKERS + code, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or "GT_VERBOSE" in environment, done.stderr
    return done.stdout


def program_command(name: str, *args: object) -> list[str]:
    """Return the command that runs a program of tests/programs."""
    return [sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, args)]


def line_in_program(name: str, text: str) -> str:
    """Return "FILE:LINE" of the one line of a program that has some text."""
    path = PROGRAMS / f"{name}.py"
    (number,) = (at for at, line in enumerate(path.read_text().splitlines(), 1) if text in line)
    return f"{path}:{number}"


def run_program(name: str, *args: object, timeout: float = 60, **environment: str):
    """Run a program of tests/programs; return the completed process with its output."""
    env = {**os.environ, **environment}
    command = program_command(name, *args)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)


def output_of(name: str, *args: object, **environment: str) -> str:
    """Run a program; return its output. It must end without errors and warnings."""
    done = run_program(name, *args, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def start_program(name: str, *args: object, **environment: str) -> subprocess.Popen:
    """Start a program of tests/programs, with pipes for its input, output and errors."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    env = {**os.environ, **environment}
    return subprocess.Popen(program_command(name, *args), text=True, env=env, **pipes)


def run_gt(*command: str, timeout: float = 60, **environment: str):
    """Run the `gt` command; return the completed process with its output."""
    return subprocess.run(
        [sys.executable, "-m", "gt", *command],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )


@contextmanager
def program(*args: object, name: str = "watching/loop", **environment: str):
    """Yield the process of a program that computes until it reads a line, then check its end."""
    process = start_program(name, *args, **environment)
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
    """Yield the address of a server with workers, and the processes: the server is the first."""
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
