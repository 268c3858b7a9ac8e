"""What an ssh cluster runs on which host."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from gt.cluster.ssh.commands import RemotePython, node_arguments, server_arguments
from gt.cluster.ssh.host import SshHost


@dataclass
class SshPlan:
    """The hosts of a cluster and what their programs are given.

    Args:
        hosts: all hosts, in their order.
        server_host: the one where the server runs.
        python: how Python is run there.
        folder: the cluster's folder on the hosts.
        is_own_folder: whether it is removed at the end.
        workers_per_host: the number of workers on each; None for one for each GPU, or one.
        listen: where the server listens.
        lease: the seconds after which programs end that hear nothing, or None.
        options: options of the workers.
        server_options: further options of the server.
        address: the server's address, once it is known.
    """

    hosts: list[SshHost]
    server_host: SshHost
    python: RemotePython
    folder: str
    is_own_folder: bool
    workers_per_host: int | None
    listen: str
    lease: float | None
    options: Sequence[str]
    server_options: Sequence[str]
    address: str = field(default="ADDRESS")

    def folder_of(self, host: SshHost) -> str:
        """Return the folder on a host: its whole path, once that is known."""
        return host.folder or self.folder

    def server_log(self) -> str:
        """Return the path of the server's log on its host."""
        return f"{self.folder_of(self.server_host)}/logs/server.log"

    def node_log(self, host: SshHost, name: str) -> str:
        """Return the path of the log of a host's program."""
        return f"{self.folder_of(host)}/logs/{name}-node.log"

    def server_arguments(self, size: int) -> list[str]:
        """Return the arguments with which Python runs the server, for the first hosts."""
        return server_arguments(
            listen=self.listen,
            folder=self.folder_of(self.server_host),
            workers=self.workers(size),
            silence=self.lease,
            options=self.server_options,
        )

    def node_arguments(self, host: SshHost, name: str) -> list[str]:
        """Return the arguments with which Python runs a host's workers, which have this name."""
        return node_arguments(
            address=self.address,
            folder=self.folder_of(host),
            name=name,
            workers=self.workers_per_host,
            silence=self.lease,
            options=self.options,
        )

    def workers(self, size: int) -> int:
        """Return how many workers the first hosts have; GPUs are known after the connection."""
        return sum(self.workers_per_host or host.gpus or 1 for host in self.hosts[:size])

    def beat(self) -> float:
        """Return how often programs must hear of this one, in seconds."""
        return 5.0 if self.lease is None else min(self.lease / 5, 5.0)

    def script(self, size: int) -> str:
        """Return the commands for the first hosts, a line for each, after the host."""
        of = self.server_host
        lines = [(of, self.python.line(self.server_arguments(size), self.server_log()))]
        for host in self.hosts[:size]:
            log = self.node_log(host, host.label)
            lines.append((host, self.python.line(self.node_arguments(host, host.label), log)))
        return "".join(f"ssh {host.text} {shlex.quote(line)}\n" for host, line in lines)
