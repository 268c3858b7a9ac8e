"""A proxy whose connections a test can close or pause."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """A server that forwards its connections to another port of this machine."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._flows = threading.Event()
        self._flows.set()
        self._threads = [self._start(self._accept)]

    def _start(self, run, *args) -> threading.Thread:
        thread = threading.Thread(target=run, args=args, daemon=True)
        thread.start()
        return thread

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                # The server is not listening now.
                client.close()
                continue
            self._sockets += [client, server]
            self._threads += [
                self._start(self._forward, client, server),
                self._start(self._forward, server, client),
            ]

    def _forward(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                to.sendall(data)
        for end in (source, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Close all connections; data in transit is lost."""
        sockets, self._sockets = self._sockets, []
        for end in sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def hold(self) -> None:
        """Pause all connections without closing them."""
        self._flows.clear()

    def let_go(self) -> None:
        """Resume all connections."""
        self._flows.set()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.let_go()
        self.cut()
        for thread in self._threads:
            thread.join(10)
