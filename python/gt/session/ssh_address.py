"""Addresses of servers that ssh reaches: `ssh://[USER@]LOGIN[:PORT]/SERVER`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gt.session.shown_address import without_secret

#: The server's port if an address has none.
_DEFAULT_PORT = 9000

_LOGIN = re.compile(
    r"ssh://(?P<login>(?:[\w.+%\\-]+@)?(?:\[[0-9a-fA-F:.%]+\]|[\w.-]+))(?::(?P<port>\d+))?"
    r"(?:/(?P<server>.*))?"
)
_SERVER = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[\w.-]+)(?::(?P<port>\d+))?")


@dataclass(frozen=True)
class SshAddress:
    """A server that is reached through ssh.

    Args:
        login: the machine that ssh logs in to, as `[USER@]HOST`; also a name of ~/.ssh/config.
        port: the port of its ssh server; None for ssh's own choice.
        server: the server's `HOST:PORT`, as the login machine resolves it; None for a path.
        path: the path of the file, on the login machine, in which the server publishes its address.
    """

    login: str
    port: int | None
    server: str | None
    path: str | None

    @staticmethod
    def parse(text: str) -> SshAddress:
        """Return the parts of an address.

        `ssh://LOGIN/HOST:PORT` is a server that the machine LOGIN reaches,
        `ssh://LOGIN/file:///PATH` one that publishes its address there, and `ssh://LOGIN` the one
        at port 9000 of that machine.

        Raises:
            ConnectionError: the text has another form.
        """
        found = _LOGIN.fullmatch(text)
        if found is None or found["login"].startswith("-"):
            raise _bad(text)
        login = found["login"].replace("[", "").replace("]", "")
        port = int(found["port"]) if found["port"] else None
        server = found["server"] or f"localhost:{_DEFAULT_PORT}"
        if server.startswith("file://"):
            path = server.removeprefix("file://")
            if not path.startswith(("/", "~/")) or "\0" in path:
                raise _bad(text)
            return SshAddress(login, port, None, path)
        return SshAddress(login, port, checked_server(server, text), None)


def checked_server(server: str, address: str) -> str:
    """Return `HOST:PORT` of a server, with the default port if it has none.

    Raises:
        ConnectionError: it has another form; the whole address is named.
    """
    found = _SERVER.fullmatch(server.removeprefix("tcp://"))
    if found is None or found["host"].startswith("-"):
        raise _bad(address)
    return f"{found['host']}:{found['port'] or _DEFAULT_PORT}"


def _bad(text: str) -> ConnectionError:
    return ConnectionError(
        f"'{without_secret(text)}' is not an address\n  hint: use ssh://LOGIN/HOST:PORT, or "
        "ssh://LOGIN/file:///PATH of a file there in which the server publishes its address"
    )
