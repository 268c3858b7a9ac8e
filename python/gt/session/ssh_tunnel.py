"""Tunnels to servers behind a login machine, with the user's own ssh.

A tunnel is a private folder with a socket, the file `address` that names it, and `key` if the
server's published address has one beside it. Each connection to the socket is one channel of one
login: ssh itself carries the data. A login that is lost is restored when a client connects again.
"""

from __future__ import annotations

import os
import select
import shlex
import socket
import subprocess
import tempfile
import threading
from pathlib import PurePosixPath

from gt.session.socket_folder import make_socket_folder
from gt.session.ssh_address import SshAddress, checked_server
from gt.session.ssh_login import SshLogin, indented

#: How long a server behind the login may take to answer the first connection, in seconds.
_ANSWER_WITHIN = 5.0

#: How long clients are refused after the server has refused one, in seconds: a client gives up a
#: server without a saved state that refuses it for 2 s.
_REFUSE_FOR = 3.0


class SshTunnel:
    """A socket whose connections lead to a server behind a login."""

    def __init__(self, name: str, to: SshAddress):
        """Log in, look for the server, and listen.

        Raises:
            ConnectionError: the login fails, or no server answers.
        """
        self._name, self._to = name, to
        folder = self.folder = make_socket_folder("gt-ssh-")
        self._key: int | None = None
        self._listener: socket.socket | None = None
        self._is_closed = threading.Event()
        self.login = SshLogin(name, to.login, to.port, folder)
        try:
            self._look()
            self._place_key()
            self._listen()
            (folder / "address").write_text(f"ipc://{folder}/s\n")
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._serve, name="gt-tunnel", daemon=True).start()

    @property
    def address(self) -> str:
        """Return the local address."""
        return f"file://{self.folder}/address"

    def renew(self) -> None:
        """Look for the server again: another one may have published its address and key.

        Raises:
            ConnectionError: the login fails, or no server answers.
        """
        self._look()
        self._place_key()

    def close(self) -> None:
        """End the login, and all connections with it."""
        self._is_closed.set()
        self._stop_listening()
        self.login.close()
        if self._key is not None:
            os.close(self._key)
            self._key = None

    def forget(self) -> None:
        """Close what a forked child has inherited; the tunnel is its parent's."""
        self._is_closed.set()
        self.login.forget()
        if self._listener is not None:
            self._listener.close()
        if self._key is not None:
            os.close(self._key)
            self._key = None

    def _target(self) -> str:
        """Return the server's `HOST:PORT`: it may be another one after a restart."""
        if self._to.path is None:
            assert self._to.server is not None
            return self._to.server
        path = _quoted(self._to.path)
        done = self.login.run(f"cat -- {path}")
        if done.returncode != 0:
            raise ConnectionError(
                f"{self._name}: no server publishes its address there"
                f"{indented(done.stderr.decode(errors='replace'))}"
            )
        return checked_server(done.stdout.decode(errors="replace").strip(), self._name)

    def _look(self) -> None:
        """Check that a server answers: that is an error now, and a wait later."""
        ours, theirs = socket.socketpair()
        with ours, theirs, tempfile.TemporaryFile() as errors:
            child = self.login.forward(self._target(), theirs.fileno(), errors.fileno())
            theirs.close()
            ours.settimeout(_ANSWER_WITHIN)
            try:
                # A server of GT speaks first.
                has_answered = bool(ours.recv(1))
            except TimeoutError:
                child.kill()
                child.wait()
                raise ConnectionError(
                    f"{self._name}: nothing answers there in {_ANSWER_WITHIN:g} s"
                ) from None
            except OSError:
                has_answered = False
            ours.close()
            child.wait()
            if not has_answered:
                errors.seek(0)
                said = indented(errors.read().decode(errors="replace"))
                raise ConnectionError(f"{self._name}: no server answers there{said}")

    def _place_key(self) -> None:
        """Place the key beside the address, if the server has published one with its own."""
        if self._to.path is None:
            return
        path = _quoted(str(PurePosixPath(self._to.path).with_name("key")))
        done = self.login.run(f"if [ -e {path} ]; then cat -- {path}; fi")
        if done.returncode != 0:
            raise ConnectionError(
                f"{self._name}: the key beside the address cannot be read"
                f"{indented(done.stderr.decode(errors='replace'))}"
            )
        if not done.stdout:
            return
        place = self.folder / "key"
        place.unlink(missing_ok=True)
        if not hasattr(os, "memfd_create"):
            with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(done.stdout)
            return
        if self._key is not None:
            os.close(self._key)
        self._key = os.memfd_create("gt-key")
        os.fchmod(self._key, 0o600)
        os.write(self._key, done.stdout)
        place.symlink_to(f"/proc/{os.getpid()}/fd/{self._key}")

    def _listen(self) -> None:
        self._stop_listening()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.folder / "s"))
        listener.listen(64)
        self._listener = listener

    def _stop_listening(self) -> None:
        listener, self._listener = self._listener, None
        (self.folder / "s").unlink(missing_ok=True)
        if listener is not None:
            try:
                # Wakes the thread that waits for a client.
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()

    def _serve(self) -> None:
        while not self._is_closed.is_set():
            listener = self._listener
            try:
                if listener is None:
                    raise OSError
                client, _ = listener.accept()
            except OSError:
                # The server refuses clients: so does this socket, for a while.
                if not self._is_closed.wait(_REFUSE_FOR):
                    self._listen()
                continue
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """Connect a client; it is only cut off if that fails, and then tries again."""
        with client, tempfile.TemporaryFile() as errors:
            try:
                self.login.ensure(lambda: not _has_left(client))
                child = self.login.forward(self._target(), client.fileno(), errors.fileno())
            except (ConnectionError, OSError, subprocess.SubprocessError):
                return
            client.close()
            child.wait()
            errors.seek(0)
            if b"refused" in errors.read() and not self._is_closed.is_set():
                self._stop_listening()


def _has_left(client: socket.socket) -> bool:
    """Return whether the other end of a socket is closed."""
    poll = select.poll()
    poll.register(client, 0)
    return bool(poll.poll(0))


def _quoted(path: str) -> str:
    """Return a path for a command of sh; `~/` is the home folder there."""
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)
