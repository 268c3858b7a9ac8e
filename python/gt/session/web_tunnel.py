"""Tunnels to servers over the port of their page, through a reverse proxy with TLS.

A tunnel is a private folder with a socket, and the file `address` that names it. A program of its
own, `web_carrier`, carries each connection to the socket as a WebSocket of the page: the user's
program computes, forks and ends as it likes meanwhile.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import select
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from gt._guarded import Guarded, GuardedFolder
from gt.session.socket_folder import make_socket_folder
from gt.session.web_address import WebAddress
from gt.session.web_failure import explain_failure

#: The program, which needs nothing of this package.
_SCRIPT = Path(__file__).with_name("web_carrier.py")

#: The oldest version of the package websockets that is used.
_OLDEST = 15

#: How long a look for the server may take, with the start of the program, in seconds.
_LOOK_WITHIN = 40.0

#: The first and the longest pause before a program that has ended is started again, in seconds.
_PAUSE = (0.1, 30.0)


class WebTunnel:
    """A socket whose connections lead to a server behind a page."""

    def __init__(self, to: WebAddress):
        """Listen, and look for the server.

        Raises:
            ConnectionError: the page refuses, or no server answers.
        """
        self._to = to
        self._packages = _websockets_folder(to)
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self.folder = make_socket_folder("gt-web-")
        self._guarded_folder = GuardedFolder(self.folder)
        self._carrier: CarrierProcess | None = None
        try:
            self._carrier = self._start()
            self.renew()
            (self.folder / "address").write_text(f"ipc://{self.folder}/s\n")
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._keep, name="gt-tunnel", daemon=True).start()

    @property
    def address(self) -> str:
        """Return the local address."""
        return f"file://{self.folder}/address"

    def renew(self) -> None:
        """Look for the server again.

        Raises:
            ConnectionError: the page refuses, or no server answers.
        """
        with self._lock:
            carrier = self._carrier
            failure = carrier.look() if carrier is not None else _ENDED
        if failure is not None:
            raise ConnectionError(explain_failure(failure, self._to))

    def close(self) -> None:
        """End all connections."""
        self._is_closed.set()
        with self._lock:
            carrier, self._carrier = self._carrier, None
        if carrier is not None:
            carrier.end()
        self._guarded_folder.end()

    def forget(self) -> None:
        """Close what a forked child has inherited; the tunnel is its parent's."""
        self._is_closed.set()
        self._guarded_folder.forget()
        # The lock may be held by a thread that the child does not have.
        if self._carrier is not None:
            self._carrier.forget()

    def _start(self) -> CarrierProcess:
        path = self.folder / "s"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(64)
            return CarrierProcess(self._packages, listener, path, self._to)

    def _keep(self) -> None:
        """Start the program again if something ends it: clients wait for a server that is away."""
        pause = _PAUSE[0]
        while (carrier := self._carrier) is not None:
            begin = time.monotonic()
            carrier.wait()
            if time.monotonic() > begin + _PAUSE[1]:
                pause = _PAUSE[0]
            if self._is_closed.wait(pause):
                return
            pause = min(2 * pause, _PAUSE[1])
            with self._lock:
                if self._carrier is carrier:
                    carrier.end()
                    self._carrier = self._start()


#: The failure of a program that something has killed.
_ENDED = {"kind": "ended"}


class CarrierProcess(Guarded):
    """A run of `web_carrier`."""

    def __init__(self, packages: Path, listener: socket.socket, path: Path, to: WebAddress):
        """Start it, with the socket where it listens."""
        script = [sys.executable, "-I", str(_SCRIPT), str(packages)]
        super().__init__(
            [*script, str(listener.fileno()), str(path)],
            keeps_terminal=False,
            inherits=[listener.fileno()],
        )
        self._write(json.dumps({"endpoint": to.endpoint, "token": to.token}))
        self._looks = 0
        self._unread = b""

    def look(self) -> dict[str, Any] | None:
        """Return why no server answers, or None."""
        assert self._process.stdout is not None
        output = self._process.stdout
        self._looks += 1
        self._write(str(self._looks))
        poll = select.poll()
        poll.register(output, select.POLLIN)
        until = time.monotonic() + _LOOK_WITHIN
        while True:
            while b"\n" in self._unread:
                line, self._unread = self._unread.split(b"\n", 1)
                number, failure = json.loads(line)
                # Another is that to a look which Ctrl-C has ended.
                if number == self._looks:
                    answer: dict[str, Any] | None = failure
                    return answer
            if not poll.poll(max(0.0, 1000 * (until - time.monotonic()))):
                self._process.kill()
                return {"kind": "timeout", "text": f"no answer in {_LOOK_WITHIN:g} s"}
            part = os.read(output.fileno(), 1 << 16)
            if not part:
                return _ENDED
            self._unread += part

    def wait(self) -> None:
        """Wait until it ends."""
        self._process.wait()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            # What reads its output sees that it has ended.
            pass


def _websockets_folder(to: WebAddress) -> Path:
    """Return the folder that has the package websockets.

    Raises:
        ConnectionError: it is missing, or too old.
    """
    found = importlib.util.find_spec("websockets")
    version = importlib.metadata.version("websockets") if found is not None else "none"
    if found is None or found.origin is None or int(version.split(".")[0]) < _OLDEST:
        raise ConnectionError(
            f"{to.shown}: an address of a page needs the package websockets, {_OLDEST} or later, "
            f"and there is {version}\n  hint: pip install 'websockets>={_OLDEST}'"
        )
    return Path(found.origin).parent.parent
