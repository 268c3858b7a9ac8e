"""Servers that are reached over their page's port, and programs that compute there."""

import importlib.util
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from gt import _gt
from gt.session import tunnel
from gt.session.tunnel import close_tunnel
from processes import cluster, program_command, write_key
from sshd import await_none, command_lines_with
from web_pages import WebPage, page_of_server

#: How soon nothing is left of a tunnel, in seconds.
GONE_WITHIN = 5.0

needs_websockets = pytest.mark.skipif(
    importlib.util.find_spec("websockets") is None,
    reason="SKIPPED: websockets is missing: pip install websockets",
)


class PageLab:
    """A server with a page and workers, its key, and a folder for the tunnels of programs."""

    def __init__(self, page: WebPage, key: Path, folder: Path, processes: list[subprocess.Popen]):
        self.page, self.key, self.folder = page, key, folder
        self.server = processes[0]
        status = page.wait_for("a status", lambda name, _: name == "status")
        #: The server's own address.
        self.address = status["dispatcher"].removeprefix("server ")

    def user(self, address: str, *options: str, **more) -> subprocess.Popen:
        """Start a program that computes at each line, through a tunnel."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = program_command("web/computes_at_lines", address, *options)
        env = {**os.environ, "TMPDIR": str(self.folder)}
        if not options:
            env["GT_KEY"] = self.key.read_text()
        process = subprocess.Popen(command, env=env, **pipes, **more)
        assert process.stdout.readline() == "ready\n"
        return process

    def carriers(self) -> list[int]:
        """Return the process IDs of the tunnels of programs."""
        return carriers_with(str(self.folder))

    def await_nothing(self) -> None:
        """Wait until no process and no folder of these tunnels is left."""
        await_none(str(self.folder), GONE_WITHIN)
        until = time.monotonic() + GONE_WITHIN
        while left := list(self.folder.iterdir()):
            assert time.monotonic() < until, left
            time.sleep(0.05)


def carriers_with(text: str) -> list[int]:
    """Return the process IDs of tunnels whose command line has a text."""
    return [pid for pid, line in command_lines_with(text).items() if "web_carrier" in line]


@contextmanager
def lab(workers: int, *options: str, has_keys: bool = True) -> Iterator[PageLab]:
    """Yield a server with a page, with workers."""
    # The paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="gt-lab-", dir="/tmp") as path:
        key, folder = Path(path) / "key", Path(path) / "tunnels"
        write_key(key, _gt.make_key())
        folder.mkdir()
        keys = ["--key-file", str(key)] if has_keys else ["--insecure"]
        each = [*keys, "--threads", "1"]
        with cluster(workers, "--web", "0", *keys, *options, worker_options=each) as (_, processes):
            opened = PageLab(page_of_server(processes[0]), key, folder, processes)
            yield opened
            for address in list(tunnel._TUNNELS):
                close_tunnel(address)
            opened.await_nothing()


class Answers:
    """A server that gives each connection the same answer, whatever it asks."""

    def __init__(self, answer: bytes):
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, suppress(OSError):
                client.settimeout(10)
                client.recv(1 << 16)
                client.sendall(self._answer)
                client.shutdown(socket.SHUT_WR)
                client.recv(1 << 16)

    def __enter__(self) -> "Answers":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(20)
