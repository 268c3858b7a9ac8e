"""Clusters on machines that ssh reaches."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shlex
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.event_loop import EventLoop
from gt.cluster.programs import WorkerOptions
from gt.cluster.ssh_commands import RemotePython, labels, node_arguments, server_arguments
from gt.cluster.ssh_host import SshHost, client
from gt.cluster.ssh_program import RemoteProgram
from gt.cluster.status import read_status

#: How long the server may take to publish its address, in seconds.
_PUBLISH_WITHIN = 60.0

#: How long everything may take to end, in seconds.
_END_WITHIN = 15.0


class Ssh(Cluster):
    """A server and workers on machines that ssh reaches.

        with gt.cluster.Ssh(["node1", "node2"]) as cluster:
            gt.connect(cluster)

    The server runs on one of them, and a program on each that keeps its workers running. All end
    within seconds when this program or its connection ends. ssh logs in with the user's own
    ~/.ssh/config, known hosts, keys and agent, and asks nothing. `scale` counts hosts, in their
    order.

    Args:
        hosts: the machines, as `[USER@]HOST[:PORT]` or names of ~/.ssh/config.
        server_host: the one of them where the server runs; None for the first.
        python: the command of Python on the hosts, as their shell reads it. It has the same version
            of GT.
        environment: variables of the programs there; other users there can see them.
        workers_per_host: the number of workers on each; None for one for each GPU, or one.
        engine: the engine of the workers: native, pytorch, numpy, jax or module:Class.
        threads: the threads of each worker; the machine's, divided equally, if it is None.
        memory: the memory for the tensors of each worker, such as "16GB"; equal parts if it is None.
        name: the name of the cluster in messages and folders.
        folder: where the logs are on the hosts; None for a new folder in ~/.cache/gt/clusters, which
            is removed at the end.
        listen: the address of the server's host at which the server listens. Workers must reach it.
        tunnel: whether this program reaches the server through ssh; None where it cannot directly.
        lease: the seconds after which all ends when the hosts do not hear of this program, because
            the network is cut without a word, or the program is stopped; None for never.
        connect: options of `asyncssh.connect`, such as `{"client_keys": ["FILE"]}`.
        server_options: further options of `gt server`.
        worker_options: further options of `gt worker`.

    Raises:
        ValueError: there is no host, or a host or a number is not valid.
    """

    kind = "ssh"
    unit = "host"

    def __init__(
        self,
        hosts: Sequence[str],
        *,
        server_host: str | None = None,
        python: str = "python3",
        environment: Mapping[str, str] | None = None,
        workers_per_host: int | None = None,
        engine: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        name: str | None = None,
        folder: str | None = None,
        listen: str = "0.0.0.0",
        tunnel: bool | None = None,
        lease: float | None = 60.0,
        connect: Mapping[str, Any] | None = None,
        server_options: Sequence[str] = (),
        worker_options: Sequence[str] = (),
    ):
        """Describe a cluster; `start` starts it."""
        if isinstance(hosts, str) or not hosts:
            raise ValueError(f"hosts is {hosts!r}, expected a list of one host or more")
        if workers_per_host is not None and workers_per_host < 1:
            raise ValueError(f"workers_per_host is {workers_per_host}, expected 1 or more")
        if lease is not None and not lease >= 1:
            raise ValueError(f"lease is {lease}, expected 1 second or more, or None")
        server = hosts[0] if server_host is None else server_host
        if server not in hosts:
            raise ValueError(f"server_host is '{server}', expected one of {', '.join(hosts)}")
        super().__init__(len(hosts), name, None)
        self._python = RemotePython(python, dict(environment or {}))
        self._hosts = [
            SshHost(host, label, self._python, connect or {})
            for host, label in zip(hosts, labels(hosts), strict=True)
        ]
        self._server_host = self._hosts[list(hosts).index(server)]
        self._per_host, self._listen, self._lease = workers_per_host, listen, lease
        self._options = WorkerOptions(engine, threads, memory, worker_options).arguments()
        self._server_options = list(server_options)
        self._tunnel, self._is_own_folder = tunnel, folder is None
        readable = re.sub(r"[^\w.-]", "-", self.name)
        self._remote = folder or f"~/.cache/gt/clusters/{readable}-{secrets.token_hex(4)}"
        self._loop: EventLoop | None = None
        self._server: RemoteProgram | None = None
        self._nodes: dict[str, RemoteProgram] = {}
        self._failures: dict[str, str] = {}
        self._server_address = ""
        self._starts = 0

    def script(self) -> str:
        """Return the commands that `start` runs, a line for each, after the host.

        Each has the key from its standard input. Before the start, the server's address and the
        hosts' home folders are not known.
        """
        server = self._server_host
        lines = [(server, self._server_arguments(), f"{self._folder_of(server)}/logs/server.log")]
        for host in self._hosts[: self.size]:
            log = f"{self._folder_of(host)}/logs/{host.label}-node.log"
            lines.append((host, self._node_arguments(host, host.label), log))
        return "".join(
            f"ssh {host.text} {shlex.quote(self._python.line(arguments, log))}\n"
            for host, arguments, log in lines
        )

    def logs(self, lines: int | None = None) -> dict[str, str]:
        """Return the last lines of each process's log, or all, by the name of the process."""
        return self._events.run(self._read_logs(lines))

    @property
    def _events(self) -> EventLoop:
        if self._loop is None:
            raise ClusterError(f"the ssh cluster '{self.name}' is not started: call start()")
        return self._loop

    def _folder_of(self, host: SshHost) -> str:
        return host.folder or self._remote

    def _server_arguments(self) -> list[str]:
        return server_arguments(
            listen=self._listen,
            folder=self._folder_of(self._server_host),
            workers=self._expected_workers(),
            silence=self._lease,
            options=self._server_options,
        )

    def _node_arguments(self, host: SshHost, name: str) -> list[str]:
        return node_arguments(
            address=self._server_address or "ADDRESS",
            folder=self._folder_of(host),
            name=name,
            workers=self._per_host,
            silence=self._lease,
            options=self._options,
        )

    def _expected_workers(self) -> int:
        return sum(self._per_host or host.gpus or 1 for host in self._hosts[: self.size])

    @property
    def _beat(self) -> float:
        return 5.0 if self._lease is None else min(self._lease / 5, 5.0)

    def _launch(self) -> None:
        client()
        self._loop = EventLoop("gt-ssh")
        self._failures.clear()
        self._loop.run(self._start_all())
        address = self._local_address()
        draft = self.folder.path / "address-new"
        draft.write_text(f"{address}\n")
        draft.rename(self.folder.address)

    async def _start_all(self) -> None:
        used = {self._server_host, *self._hosts[: self.size]}
        prepared = [asyncio.create_task(host.prepare(self._remote)) for host in used]
        try:
            await asyncio.gather(*prepared)
        finally:
            for task in prepared:
                task.cancel()
        server = self._server_host
        key = self.folder.key.read_text().strip()
        program = RemoteProgram(
            server,
            self._server_arguments(),
            what="the server",
            log=f"{server.folder}/logs/server.log",
            beat=self._beat,
        )
        self._server = program
        await program.start(key)
        self._server_address = await self._await_address(program)
        await asyncio.gather(*(self._start_node(host) for host in self._hosts[: self.size]))
        asyncio.create_task(self._withdraw(program))

    async def _await_address(self, program: RemoteProgram) -> str:
        path = shlex.quote(f"{program.host.folder}/address")
        line = f"sh -c {shlex.quote(f'until [ -s {path} ]; do sleep 0.1; done; cat {path}')}"
        published = asyncio.create_task(program.host.run(line, _PUBLISH_WITHIN))
        ended = asyncio.create_task(program.has_ended.wait())
        await asyncio.wait([published, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not published.done():
            published.cancel()
            raise ClusterError(f"the ssh cluster '{self.name}' did not start: {program.failure}")
        return published.result()[1].strip()

    async def _start_node(self, host: SshHost) -> None:
        await host.prepare(self._remote)
        self._starts += 1
        old = self._nodes.get(host.label)
        # Those that leave keep their names until they have.
        name = host.label if old is None else f"{host.label}.{self._starts}"
        node = RemoteProgram(
            host,
            self._node_arguments(host, name),
            what="its workers' program",
            log=f"{host.folder}/logs/{name}-node.log",
            beat=self._beat,
        )
        self._nodes[host.label] = node
        self._failures.pop(host.label, None)
        await node.start(self.folder.key.read_text().strip())

    async def _withdraw(self, server: RemoteProgram) -> None:
        """Withdraw the address when the server has ended: clients need not wait for it."""
        await server.has_ended.wait()
        if self._folder is not None:
            self._folder.address.unlink(missing_ok=True)

    def _local_address(self) -> str:
        """Return the address at which this program reaches the server."""
        address = self._server_address
        if self._tunnel or (self._tunnel is None and not self._is_direct(address)):
            return self._events.run(self._open_tunnel(address))
        return address

    def _is_direct(self, address: str) -> bool:
        """Return whether the server itself answers at its address, and not another one."""
        host, port = address.rsplit(":", 1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
            read_status(address, str(self.folder.key))
        except OSError:
            return False
        return True

    async def _open_tunnel(self, address: str) -> str:
        host, port = address.rsplit(":", 1)
        connection = self._server_host.connection
        # sshd sends small packets at once only if a terminal is open.
        await connection.create_process("exec cat > /dev/null", term_type="dumb")
        listener = await connection.forward_local_port("127.0.0.1", 0, host.strip("[]"), int(port))
        return f"127.0.0.1:{listener.get_port()}"

    def _resize(self, size: int) -> None:
        if size > len(self._hosts):
            raise ValueError(f"the number of hosts is {size}, but there are {len(self._hosts)}")
        for number, host in enumerate(self._hosts):
            self._events.begin(self._set_host(host, number < size))

    async def _set_host(self, host: SshHost, is_used: bool) -> None:
        node = self._nodes.get(host.label)
        runs = node is not None and node.is_running and not node.is_leaving
        try:
            if is_used and not runs:
                await self._start_node(host)
            elif node is not None and runs and not is_used:
                node.is_leaving = True
                await node.drain()
        except ClusterError as error:
            self._failures[host.label] = str(error)

    def _failure(self) -> str | None:
        programs = [*([self._server] if self._server else []), *self._nodes.values()]
        found = [program.failure for program in programs if program.failure is not None]
        return next(iter([*found, *self._failures.values()]), None)

    def _notes(self) -> list[str]:
        programs = [*([self._server] if self._server else []), *self._nodes.values()]
        found = [program.failure for program in programs if program.failure is not None]
        return [line for text in [*found, *self._failures.values()] for line in text.splitlines()]

    async def _read_logs(self, lines: int | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for host in self._hosts:
            if not host.folder:
                continue
            try:
                names = (await host.run(f"ls {shlex.quote(f'{host.folder}/logs')}"))[1].split("\n")
                for name in names:
                    # Hosts that share a home folder have the same files.
                    if name.endswith(".log") and name[:-4] not in found:
                        path = shlex.quote(f"{host.folder}/logs/{name}")
                        line = f"tail -n {lines} -- {path}" if lines else f"cat -- {path}"
                        found[name[:-4]] = (await host.run(line))[1]
            except ClusterError as error:
                found[f"{host.label} (not reached)"] = f"{error}\n"
        return found

    def _shut_down(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None:
            return
        try:
            loop.run(self._end_all(), _END_WITHIN)
        except TimeoutError:
            pass  # Without connections, all ends.
        finally:
            loop.close()
            self._server, self._server_address = None, ""
            self._nodes.clear()

    async def _end_all(self) -> None:
        programs = [*([self._server] if self._server else []), *self._nodes.values()]
        await asyncio.gather(*(of.end() for of in programs), return_exceptions=True)
        await asyncio.gather(*(self._leave(of) for of in self._hosts), return_exceptions=True)

    async def _leave(self, host: SshHost) -> None:
        try:
            if self._is_own_folder and host.folder:
                await host.run(f"rm -rf -- {shlex.quote(host.folder)}", 5)
        finally:
            await host.close()
