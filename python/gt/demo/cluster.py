"""A server with workers on this machine, as child processes of the demo."""

import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gt.demo.limit import DemoError

#: The line by which a server or worker announces that it is ready.
READY = re.compile(r"gt (?:server: listening at|worker: \S+ serves) ")
#: The seconds that a process may take to be ready.
START_SECONDS = 30
#: The seconds that a process may take to exit after SIGTERM, before it is killed.
STOP_SECONDS = 5


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Run a server with workers for the length of a block, and yield the server's address.

    Raises:
        DemoError: a process exits early, or is not ready in time.
    """
    port = _free_port()
    # The stack stops processes in reverse order, so workers stop before their server.
    with ExitStack() as stack:
        server = stack.enter_context(_Process("the server", "server", "-p", port))
        server.wait_until_ready()
        started = [
            stack.enter_context(_Process(f"worker {number}", "worker", "-p", port, "--id", number))
            for number in map(str, range(workers))
        ]
        for worker in started:
            worker.wait_until_ready()
        yield f"localhost:{port}"


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class _Process:
    """A child process, as a context manager that stops it at the end of its block."""

    def __init__(self, name: str, *command: str):
        self._name = name
        # The child imports the same modules as this process, whatever its working folder contains.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from gt.demo.child import main; sys.exit(main(sys.argv[1:]))"
        )
        # In a new process session, so that Ctrl-C in the terminal reaches only the demo.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def wait_until_ready(self) -> None:
        """Wait until the process announces that it is ready."""
        end = time.monotonic() + START_SECONDS
        told: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                raise DemoError(f"waited {START_SECONDS} s for {self._name} to be ready") from None
            if READY.match(line):
                return
            if not line:
                status = self._process.wait(STOP_SECONDS)
                text = "".join(told[-5:]).strip() or "without a message"
                raise DemoError(f"{self._name} exited at start with status {status}: {text}")
            told.append(line)

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
