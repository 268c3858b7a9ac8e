"""Clusters on machines that ssh reaches."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.folder import write_text
from gt.cluster.programs import WorkerOptions
from gt.cluster.ssh.commands import RemotePython, labels
from gt.cluster.ssh.event_loop import EventLoop
from gt.cluster.ssh.host import SshHost, client
from gt.cluster.ssh.plan import SshPlan
from gt.cluster.ssh.run import SshRun
from gt.cluster.status import read_status

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
        memory: the memory for the tensors of each worker, such as "16GB"; None for equal parts.
        name: the name of the cluster in messages and folders.
        folder: where key and address are on this machine; a temporary folder if it is None.
        remote_folder: where the logs are on the hosts; None for a new one in ~/.cache/gt/clusters,
            which is removed at the end.
        listen: the address of the server's host at which the server listens; workers reach it.
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
        folder: str | os.PathLike[str] | None = None,
        remote_folder: str | None = None,
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
        super().__init__(len(hosts), name, folder)
        runner = RemotePython(python, dict(environment or {}))
        all_hosts = [
            SshHost(host, label, runner, connect or {})
            for host, label in zip(hosts, labels(hosts), strict=True)
        ]
        readable = re.sub(r"[^\w.-]", "-", self.name)
        self._plan = SshPlan(
            hosts=all_hosts,
            server_host=all_hosts[list(hosts).index(server)],
            python=runner,
            folder=remote_folder or f"~/.cache/gt/clusters/{readable}-{secrets.token_hex(4)}",
            is_own_folder=remote_folder is None,
            workers_per_host=workers_per_host,
            listen=listen,
            lease=lease,
            options=WorkerOptions(engine, threads, memory, worker_options).arguments(),
            server_options=list(server_options),
        )
        self._tunnel = tunnel
        self._loop: EventLoop | None = None
        self._run: SshRun | None = None

    def script(self) -> str:
        """Return the commands that `start` runs, a line for each, after the host.

        Each has the key from its standard input. Before the start, the server's address and the
        hosts' home folders are not known.
        """
        return self._plan.script(self.size)

    def logs(self, lines: int | None = None) -> dict[str, str]:
        """Return the last lines of each process's log, or all, by the name of the process."""
        loop, run = self._running
        return loop.run(run.read_logs(lines))

    @property
    def _running(self) -> tuple[EventLoop, SshRun]:
        if self._loop is None or self._run is None:
            raise ClusterError(f"the ssh cluster '{self.name}' is not started: call start()")
        return self._loop, self._run

    def _expected_workers(self) -> int:
        return self._plan.workers(self.size)

    def _launch(self) -> None:
        client()
        key, address = self.folder.key.read_text().strip(), self.folder.address
        # Clients need not wait for a server that has ended.
        run = SshRun(self._plan, key, on_end=lambda: address.unlink(missing_ok=True))
        loop = EventLoop("gt-ssh")
        self._loop, self._run = loop, run
        try:
            loop.run(run.start(self.size))
        except ClusterError as error:
            raise ClusterError(
                f"the ssh cluster '{self.name}' did not start: {error}"
            ) from error.__cause__
        write_text(address, f"{self._local_address(loop, run)}\n")

    def _local_address(self, loop: EventLoop, run: SshRun) -> str:
        """Return the address at which this program reaches the server."""
        published = self._plan.address
        if self._tunnel or (self._tunnel is None and not self._is_direct(published)):
            return loop.run(run.open_tunnel())
        return published

    def _is_direct(self, address: str) -> bool:
        """Return whether the server itself answers at its address, and not another one."""
        host, port = address.rsplit(":", 1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
            read_status(address, str(self.folder.key))
        except OSError:
            return False
        return True

    def adapt(self, minimum: int, maximum: int, *, idle: float = 60.0) -> None:
        """From now on, have as many hosts as there is work for, as `Cluster.adapt` describes.

        Raises:
            ValueError: the numbers do not fit, or there are not as many hosts.
        """
        if maximum > len(self._plan.hosts):
            raise ValueError(
                f"adapt: maximum is {maximum}, but there are {len(self._plan.hosts)} hosts"
            )
        super().adapt(minimum, maximum, idle=idle)

    def _resize(self, size: int) -> None:
        hosts = self._plan.hosts
        if size > len(hosts):
            raise ValueError(f"the number of hosts is {size}, but there are {len(hosts)}")
        loop, run = self._running
        for number, host in enumerate(hosts):
            loop.begin(run.set_host(host, number < size))

    def _failure(self) -> str | None:
        return next(iter(self._run.failures()), None) if self._run else None

    def _notes(self) -> list[str]:
        failures = self._run.failures() if self._run else []
        return [line for text in failures for line in text.splitlines()]

    def _shut_down(self) -> None:
        loop, run = self._loop, self._run
        self._loop = self._run = None
        if loop is None or run is None:
            return
        try:
            loop.run(run.end(), _END_WITHIN)
        except TimeoutError:
            pass  # What has no connection ends by itself.
        finally:
            loop.close()
