"""Start programs that train on a server, for tests that disturb them."""

import itertools
import subprocess
import sys
import threading
import time
from pathlib import Path

from processes import cluster, program_command

#: Programs that train; their arguments are a server's address and the number of steps.
TRAINING = "training/perceptron"
SHARDED = "training/sharded"
GPT = "training/transformer"


def start_worker(address: str, name: str, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "gt.worker", "--address", address, "--id", name, *options]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = worker.stdout.readline()
    assert line.startswith("gt worker"), (line, worker.stderr.read())
    return worker


def start_server(address: str, state: Path, *options: str) -> subprocess.Popen:
    """Start a server at an address; it resumes from its state folder if that has one."""
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "gt.server", "-p", port, "--state", str(state), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("gt server"), (line, server.stderr.read())
    return server


class Training:
    """A running program of tests/programs, and the lines that it has printed so far."""

    def __init__(self, name: str, *args: object) -> None:
        self.process = subprocess.Popen(
            program_command(name, *args),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.times: list[float] = []
        self.errors: list[str] = []
        self.threads = [
            threading.Thread(target=self._read),
            threading.Thread(target=lambda: self.errors.extend(self.process.stderr)),
        ]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        for line in iter(self.process.stdout.readline, ""):
            self.lines.append(line)
            self.times.append(time.monotonic())

    def longest_gap(self) -> float:
        """Return the longest time between two lines, in seconds."""
        return max(after - before for before, after in itertools.pairwise(self.times))

    def wait_for(self, step: int) -> None:
        """Wait until the program has printed the number of a step."""
        until = time.monotonic() + 60
        while f"step {step}\n" not in self.lines:
            assert time.monotonic() < until and self.process.poll() is None, self.errors
            time.sleep(0.005)

    def end(self, limit: float = 60) -> str:
        """Wait for the end of the program, `limit` seconds at most; return its last line."""
        assert self.process.wait(limit) == 0, self.errors
        self._close()
        return self.lines[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._close()

    def _close(self) -> None:
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()


def undisturbed(name: str, workers: int, steps: int) -> str:
    """Return the last line of a program on a cluster that no test disturbs."""
    with cluster(workers) as (address, _):
        training = Training(name, address, steps)
        result = training.end(60 + steps / 200)
        assert training.errors == []
        return result
