"""A port of this machine that leads to the server's pod, through the Kubernetes API server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from gt.cluster.errors import ClusterError

#: How much is read at once, in bytes.
_PIECE = 1 << 16

#: How long connections may take to end, in seconds.
_END_WITHIN = 5.0


class Forward:
    """Listens at a port of the loopback address that the system chooses.

    Each connection is a connection to the pod that is the server's then, so programs reconnect when
    that is another one. It ends with this program.
    """

    def __init__(self, connect: Callable[[], Any], port: int):
        """Begin to listen.

        Args:
            connect: returns a new connection, whose `socket` takes the port.
            port: the port in the pod.
        """
        self._connect, self._port = connect, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[Any] = set()
        self._threads: set[threading.Thread] = set()
        self._is_closed = False
        #: Why the last connection failed, or None.
        self.failure: str | None = None
        threading.Thread(target=self._accept, name="gt-forward", daemon=True).start()

    @property
    def address(self) -> str:
        """Return the address at which it listens."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """End it, and its connections."""
        self._is_closed = True
        # A thread that is in `accept` is woken by this alone.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        with self._lock:
            sockets, threads = list(self._open), list(self._threads)
        for one in sockets:
            _shut(one)
        # Their requests to the API server end, too.
        for thread in threads:
            thread.join(_END_WITHIN)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                local, _ = self._listener.accept()
            except OSError:
                return
            local.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(local,), daemon=True)
            with self._lock:
                self._threads.add(thread)
            thread.start()

    def _serve(self, local: socket.socket) -> None:
        try:
            self._forward(local)
        finally:
            local.close()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _forward(self, local: socket.socket) -> None:
        try:
            connection = self._connect()
            remote = connection.socket(self._port)
            # The client's socket pair is not blocking after it was made.
            remote.setblocking(True)
        except (ClusterError, OSError) as error:
            self.failure = str(error)
            return
        self.failure = None
        with self._lock:
            self._open |= {local, remote}
        if self._is_closed:
            _shut(local)
        back = threading.Thread(target=_copy, args=(remote, local), daemon=True)
        back.start()
        _copy(local, remote)
        back.join()
        with self._lock:
            self._open -= {local, remote}
        _end(connection)


def _end(connection: Any) -> None:
    """End the client's thread of a connection, and its socket if that thread has failed."""
    connection.close()
    until = time.monotonic() + 1
    while connection.connected and time.monotonic() < until:
        time.sleep(0.01)
    connection.websocket.shutdown()


def _copy(source: Any, target: Any) -> None:
    """Copy until one side ends; then end both: a link of GT never ends one direction only."""
    try:
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    except OSError:
        pass
    _shut(source)
    _shut(target)


def _shut(one: Any) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
