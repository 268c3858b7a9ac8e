"""A program of GT that runs on a host of an ssh cluster."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from gt.cluster.errors import ClusterError, said
from gt.cluster.ssh.commands import PID_LINE
from gt.cluster.ssh.host import SshHost, client

if TYPE_CHECKING:
    import asyncssh

#: How long a program may take to print its process ID, in seconds.
_START_WITHIN = 20.0

#: How long a program may take to end before it is killed, in seconds.
_END_WITHIN = 4.5


class RemoteProgram:
    """A program on a host: it has the key from its standard input, and ends when that does.

    sshd closes that when the connection is lost or this process dies. While this process runs, it
    writes there regularly.
    """

    def __init__(self, host: SshHost, arguments: list[str], *, what: str, log: str, beat: float):
        """Describe a program; `start` starts it.

        Args:
            host: where it runs.
            arguments: those of Python.
            what: what it is, for messages.
            log: the file there to which its output is appended.
            beat: how often it is written to, in seconds.
        """
        self.host, self.log = host, log
        self._arguments, self._what, self._beat = arguments, what, beat
        self._process: asyncssh.SSHClientProcess[bytes] | None = None
        self._pid = 0
        self._watching: asyncio.Task[None] | None = None
        self.is_leaving = self._is_ending = False
        #: Why it has ended, if it was not asked to.
        self.failure: str | None = None
        self.has_ended = asyncio.Event()

    async def start(self, key: str) -> None:
        """Start it and pass the key.

        Raises:
            ClusterError: it cannot be started.
        """
        asyncssh = client()
        line = self.host.python.line(self._arguments, self.log)
        try:
            self._process = await self.host.connection.create_process(line, encoding=None)
            self._process.stdin.write(key.encode() + b"\n")
            self._pid = await asyncio.wait_for(self._read_pid(self._process), _START_WITHIN)
        except (OSError, asyncssh.Error, TimeoutError, asyncio.TimeoutError) as error:
            raise ClusterError(
                f"host {self.host.text}: {self._what} cannot be started{said(str(error))}"
            ) from error
        self._watching = asyncio.create_task(self._watch(self._process))

    async def _read_pid(self, process: asyncssh.SSHClientProcess[bytes]) -> int:
        while line := await process.stdout.readline():
            # The start files of a shell may print something, too.
            if line.startswith(PID_LINE.encode()):
                return int(line.split()[1])
        raise OSError((await process.stderr.read()).decode(errors="replace"))

    async def _watch(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        closed = asyncio.create_task(process.wait_closed())
        while not (await asyncio.wait([closed], timeout=self._beat))[0]:
            if not self._is_ending:
                process.stdin.write(b"\n")
        status = process.returncode
        if status != 0 and not self.is_leaving:
            how = "the connection is lost" if status is None else f"exit status {status}"
            if status is not None and status < 0:
                how = f"signal {-status}"
            tail = said(await self.tail(20)) if status is not None else ""
            self.failure = f"host {self.host.text}: {self._what} ended ({how}){tail}"
        elif not self.is_leaving:
            self.failure = f"host {self.host.text}: {self._what} ended{said(await self.tail(20))}"
        self.has_ended.set()

    @property
    def is_running(self) -> bool:
        """Return whether it runs, as far as is known."""
        return self._process is not None and not self.has_ended.is_set()

    async def tail(self, lines: int) -> str:
        """Return the last lines of its log; nothing if the host cannot be reached."""
        try:
            return (await self.host.run(f"tail -n {lines} -- {shlex.quote(self.log)}"))[1]
        except ClusterError:
            return ""

    async def drain(self) -> None:
        """Have it end in good order: workers hand over what they have."""
        self.is_leaving = True
        if self.is_running:
            await self.host.run(f"kill -TERM {self._pid}")

    async def end(self) -> None:
        """Have it end now, and wait until it has; after some time it is killed."""
        self.is_leaving = self._is_ending = True
        if self._process is None:
            return
        self._process.stdin.write_eof()
        if self._watching is None:
            return
        try:
            await asyncio.wait_for(self.has_ended.wait(), _END_WITHIN)
        except (TimeoutError, asyncio.TimeoutError):
            try:
                await self.host.run(f"kill -KILL {self._pid}")
            except ClusterError:
                pass  # It ends with the connection.
