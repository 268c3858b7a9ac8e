"""A running ssh cluster: the connections and programs, all in one event loop."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable

from gt.cluster.errors import ClusterError, said
from gt.cluster.ssh.host import SshHost
from gt.cluster.ssh.plan import SshPlan
from gt.cluster.ssh.program import RemoteProgram

#: How long the server may take to publish its address, in seconds.
_PUBLISH_WITHIN = 60.0


class SshRun:
    """Starts, drains and ends the programs of a plan."""

    def __init__(self, plan: SshPlan, key: str, *, on_end: Callable[[], None]):
        """Start nothing yet.

        Args:
            plan: what runs where.
            key: the key that programs read from their standard input.
            on_end: called when the server has ended.
        """
        self._plan, self._key, self._on_end = plan, key, on_end
        self._server: RemoteProgram | None = None
        # All that were started, also those that leave: the last one of a host is the current one.
        self._nodes: list[RemoteProgram] = []
        self._failures: dict[str, str] = {}
        self._watching: asyncio.Task[None] | None = None

    async def start(self, size: int) -> None:
        """Start the server and the workers of the first hosts.

        Raises:
            ClusterError: it fails; `end` ends what was started.
        """
        plan, server = self._plan, self._plan.server_host
        used = {server, *plan.hosts[:size]}
        prepared = [asyncio.create_task(host.prepare(plan.folder)) for host in used]
        try:
            await asyncio.gather(*prepared)
        finally:
            for task in prepared:
                task.cancel()
        if server.published is not None:
            raise ClusterError(
                f"host {server.text}: another cluster has the folder {server.folder}: its server "
                f"is at {server.published}"
            )
        # A server that was killed has not removed it.
        await server.run(f"rm -f -- {shlex.quote(f'{server.folder}/address')}")
        program = RemoteProgram(
            server,
            plan.server_arguments(size),
            what="the server",
            log=plan.server_log(),
            beat=plan.beat(),
        )
        self._server = program
        await program.start(self._key)
        self._watching = asyncio.create_task(self._watch(program))
        plan.address = await self._await_address(program)
        await asyncio.gather(*(self._start_node(host) for host in plan.hosts[:size]))

    async def set_host(self, host: SshHost, is_used: bool) -> None:
        """Start the workers of a host, or drain them; a failure is noted."""
        node = self._node_of(host)
        runs = node is not None and node.is_running and not node.is_leaving
        try:
            if is_used and not runs:
                await self._start_node(host)
            elif node is not None and runs and not is_used:
                await node.drain()
        except ClusterError as error:
            self._failures[host.label] = str(error)

    async def open_tunnel(self) -> str:
        """Return an address of this machine that leads to the server."""
        host, port = self._plan.address.rsplit(":", 1)
        connection = self._plan.server_host.connection
        listener = await connection.forward_local_port("127.0.0.1", 0, host.strip("[]"), int(port))
        return f"127.0.0.1:{listener.get_port()}"

    def failures(self) -> list[str]:
        """Return what has failed."""
        programs = [*([self._server] if self._server else []), *self._nodes]
        found = [program.failure for program in programs if program.failure is not None]
        return [*found, *self._failures.values()]

    async def read_logs(self, lines: int | None) -> dict[str, str]:
        """Return the last lines of each log, or all, by the name of the process."""
        found: dict[str, str] = {}
        for host in self._plan.hosts:
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

    async def end(self) -> None:
        """End all programs, remove the folders and close the connections."""
        programs = [*([self._server] if self._server else []), *self._nodes]
        await asyncio.gather(*(of.end() for of in programs), return_exceptions=True)
        await asyncio.gather(*map(self._leave, self._plan.hosts), return_exceptions=True)

    def _node_of(self, host: SshHost) -> RemoteProgram | None:
        return next((node for node in reversed(self._nodes) if node.host is host), None)

    async def _start_node(self, host: SshHost) -> None:
        await host.prepare(self._plan.folder)
        earlier = sum(node.host is host for node in self._nodes)
        # Those that leave keep their names until they have.
        name = f"{host.label}.{earlier + 1}" if earlier else host.label
        node = RemoteProgram(
            host,
            self._plan.node_arguments(host, name),
            what="the program of its workers",
            log=self._plan.node_log(host, name),
            beat=self._plan.beat(),
        )
        for other in self._nodes:
            if other.host is host:
                # It was replaced: its failure is no longer one of the cluster.
                other.failure = None
        self._nodes.append(node)
        self._failures.pop(host.label, None)
        await node.start(self._key)

    async def _await_address(self, program: RemoteProgram) -> str:
        # It is asked from here: a loop on the host could outlive this process.
        line = f"cat -- {shlex.quote(f'{program.host.folder}/address')}"
        until = time.monotonic() + _PUBLISH_WITHIN
        while not (published := (await program.host.run(line))[1].strip()):
            if program.has_ended.is_set():
                raise ClusterError(program.failure or f"host {program.host.text}: the server ended")
            if time.monotonic() > until:
                raise ClusterError(
                    f"host {program.host.text}: the server has not published its address in "
                    f"{_PUBLISH_WITHIN:g} s{said(await program.tail(20))}"
                )
            await asyncio.sleep(0.05)
        return published

    async def _watch(self, server: RemoteProgram) -> None:
        await server.has_ended.wait()
        self._on_end()

    async def _leave(self, host: SshHost) -> None:
        try:
            if self._plan.is_own_folder and host.folder:
                await host.run(f"rm -rf -- {shlex.quote(host.folder)}", 5)
        finally:
            await host.close()
