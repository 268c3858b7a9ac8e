"""A host of an ssh cluster: one connection, over which commands and programs run there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gt
from gt.cluster.errors import ClusterError, said
from gt.cluster.ssh.commands import RemotePython

if TYPE_CHECKING:
    import asyncssh

#: The limits on connecting and logging in, in seconds.
_LIMITS = {"connect_timeout": 20, "login_timeout": 30}

#: How often the connection is probed, in seconds, and how many probes may be lost.
_PROBES = {"keepalive_interval": 5, "keepalive_count_max": 4}

#: How long a command may take, in seconds, and the first one, which imports GT there.
_COMMAND_WITHIN, _REPORT_WITHIN = 20.0, 90.0

_HOST = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[0-9a-fA-F:.%]+)\]|(?P<name>[^@:\s\[\]-][^@:\s\[\]]*))"
    r"(?::(?P<port>\d+))?"
)


def client() -> Any:
    """Return the module asyncssh.

    Raises:
        ClusterError: it is not installed.
    """
    try:
        import asyncssh
    except ImportError as error:
        raise ClusterError(
            f"gt.cluster.Ssh needs asyncssh ({error})\n  hint: pip install asyncssh"
        ) from None
    return asyncssh


def checked_host(text: str) -> dict[str, Any]:
    """Return a host's name, and its user and port if they are given, as asyncssh takes them.

    Raises:
        ValueError: it is not `[USER@]HOST[:PORT]`.
    """
    found = _HOST.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found["port"] or 1) not in range(1, 65536):
        raise ValueError(f"'{text}' is not a host: use [USER@]HOST[:PORT]")
    given = {"host": found["v6"] or found["name"]}
    if found["user"]:
        given["username"] = found["user"]
    return {**given, **({"port": int(found["port"])} if found["port"] else {})}


class SshHost:
    """A host and the connection to it. All methods run in one event loop."""

    def __init__(self, text: str, label: str, python: RemotePython, options: Mapping[str, Any]):
        """Describe a host; nothing is connected yet."""
        self.text, self.label = text, label
        self.python = python
        self._options = {**_LIMITS, **_PROBES, **checked_host(text), **options}
        self._connection: asyncssh.SSHClientConnection | None = None
        self.gpus = 0
        #: The cluster's folder there.
        self.folder = ""
        #: Where a server listens that published its address in this folder before.
        self.published: str | None = None
        _HOSTS.add(self)

    @property
    def connection(self) -> asyncssh.SSHClientConnection:
        """Return the connection.

        Raises:
            ClusterError: there is none.
        """
        if self._connection is None or self._connection.is_closed():
            raise ClusterError(f"host {self.text}: there is no connection")
        return self._connection

    async def prepare(self, folder: str) -> None:
        """Connect, and make the folder there, unless that is done.

        Raises:
            ClusterError: the login, Python or GT there fail.
        """
        if self._connection is not None and not self._connection.is_closed():
            return
        asyncssh = client()
        try:
            self._connection = await asyncssh.connect(**self._options)
        except (OSError, asyncio.TimeoutError, asyncssh.Error, ValueError) as error:
            raise ClusterError(f"host {self.text}: {_reason(error)}{said(str(error))}") from error
        await self._inspect(folder)

    async def run(self, command: str, limit: float = _COMMAND_WITHIN) -> tuple[int, str, str]:
        """Run a command there; return its exit status, output and errors.

        Raises:
            ClusterError: the connection is lost, or it takes too long.
        """
        asyncssh = client()
        connection = self.connection
        try:
            done = await asyncio.wait_for(
                connection.run(command, stdin=asyncssh.DEVNULL, errors="replace"), limit
            )
        except (TimeoutError, asyncio.TimeoutError):
            raise ClusterError(f"host {self.text}: no answer in {limit:g} s") from None
        except (OSError, asyncssh.Error) as error:
            raise ClusterError(f"host {self.text}: {_reason(error)}{said(str(error))}") from error
        status = -1 if done.exit_status is None else done.exit_status
        return status, str(done.stdout), str(done.stderr)

    async def close(self) -> None:
        """Close the connection: what runs over it ends."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            try:
                await asyncio.wait_for(connection.wait_closed(), 2)
            except (TimeoutError, asyncio.TimeoutError):
                connection.abort()

    def forget(self) -> None:
        """Close what a forked child has inherited: the connection ends with its parent."""
        connection, self._connection = self._connection, None
        end = connection.get_extra_info("socket") if connection is not None else None
        if end is not None and end.fileno() >= 0:
            # The object that has the descriptor may close it later.
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, end.fileno(), inheritable=False)
            os.close(nothing)

    async def _inspect(self, folder: str) -> None:
        line = self.python.line(["-m", "gt.cluster.ssh.host_report", folder])
        status, output, errors = await self.run(line, _REPORT_WITHIN)
        # The start files of a shell may print something, too.
        found = [of for of in output.splitlines() if of.startswith('{"version"')]
        if status != 0 or not found:
            what = _missing(self.python.python, status, errors)
            raise ClusterError(f"host {self.text}: {what}{said(errors or output)}")
        report = json.loads(found[-1])
        if report["version"] != gt.__version__:
            raise ClusterError(
                f"host {self.text}: gt there has the version {report['version']}, and here "
                f"{gt.__version__}: install the same on both sides"
            )
        self.gpus, self.folder = report["gpus"], report["folder"]
        self.published = report["published"]


def _missing(python: str, status: int, errors: str) -> str:
    if status in (126, 127):
        return f"'{python}' cannot be run there: is there a Python, and is its path right?"
    if "No module named" in errors and "gt.cluster" in errors.split("No module named")[-1]:
        return f"gt of '{python}' there is older than {gt.__version__}, which is here"
    if "No module named" in errors and re.search(r"No module named '?gt\b", errors):
        return f"'{python}' there has no gt: pip install gt-tensor=={gt.__version__}"
    return f"gt of '{python}' there does not work (exit status {status})"


def _reason(error: Exception) -> str:
    """Return what an error of a connection means."""
    asyncssh = client()
    reasons = {
        socket.gaierror: "the host is unknown",
        ConnectionRefusedError: "no ssh server listens there",
        asyncssh.PermissionDenied: "the login is refused",
        asyncssh.HostKeyNotVerifiable: "the host key is unknown, or has changed: log in with ssh "
        "once, and compare it with that of the host",
        asyncssh.ConfigParseError: "the configuration of ssh is not valid",
        asyncssh.KeyImportError: "a key file cannot be read",
        (TimeoutError, asyncio.TimeoutError): "no answer",
        asyncssh.ChannelOpenError: "the ssh server does not run a command",
        asyncssh.ConnectionLost: "the connection is lost",
        OSError: "it cannot be reached",
    }
    if "timeout" in str(error).lower():
        return "no answer"
    for kinds, reason in reasons.items():
        if isinstance(error, kinds):
            return reason
    return "the connection fails"


def _forget_all() -> None:
    for host in list(_HOSTS):
        host.forget()


_HOSTS: weakref.WeakSet[SshHost] = weakref.WeakSet()
os.register_at_fork(after_in_child=_forget_all)
