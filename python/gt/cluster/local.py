"""Clusters on this machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from gt.cluster.base import Cluster
from gt.cluster.devices import device_environment, gpus, memory_part
from gt.cluster.errors import said
from gt.cluster.process import ChildProcess
from gt.cluster.programs import WorkerOptions, server_command, worker_command
from gt.cluster.supervisor import Supervisor, WorkerProgram

#: How long a worker waits for the server, in seconds.
_SERVER_WAIT = 60.0

#: How long the server may take to end, in seconds.
_END_WITHIN = 4.5


class Local(Cluster):
    """A server and workers on this machine, as children of this program.

        with gt.cluster.Local(workers=2) as cluster:
            gt.connect(cluster)

    They end with this program, however it ends. A worker that fails is started again. The server
    listens at a port of the loopback address that the system chooses.

    Args:
        workers: the number of workers. On a machine with GPUs, the first workers have one each.
        engine: the engine of the workers: native, pytorch, numpy, jax or module:Class.
        threads: the threads of each worker; the machine's, divided equally, if it is None.
        memory: the memory for the tensors of each worker, as "16GB"; equal parts if it is None.
        name: the name of the cluster in messages.
        folder: where key, address and logs are; a temporary folder if it is None.
        server_options: further options of `gt server`.
        worker_options: further options of `gt worker`.
    """

    kind = "local"

    def __init__(
        self,
        workers: int = 1,
        *,
        engine: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        name: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        server_options: Sequence[str] = (),
        worker_options: Sequence[str] = (),
    ):
        """Describe a cluster; `start` starts it."""
        super().__init__(workers, name, folder)
        self._server_options = list(server_options)
        count = max(workers, 1)
        if threads is None:
            threads = max(1, (os.cpu_count() or 1) // count)
        if memory is None and not gpus():
            memory = str(memory_part(count))
        self._options = WorkerOptions(engine, threads, memory, worker_options)
        self._server: ChildProcess | None = None
        self._workers: Supervisor | None = None

    def script(self) -> str:
        """Return the commands that `start` runs."""
        given = "FOLDER" if self._given_folder is None else self._given_folder
        path = self._folder.address if self._folder else Path(given).expanduser() / "address"
        commands = [
            self._server_command(str(path)),
            *(self._program(number, str(path)).command for number in range(self.size)),
        ]
        return "".join(shlex.join([*of, "--key-file=-", "--until-eof"]) + "\n" for of in commands)

    def _server_command(self, path: str) -> list[str]:
        return server_command(
            host="127.0.0.1", publish=path, workers=self.size, options=self._server_options
        )

    def _program(self, number: int, path: str) -> WorkerProgram:
        command = worker_command(
            address=f"file://{path}",
            name=str(number),
            wait=_SERVER_WAIT,
            options=self._options.arguments(),
        )
        return WorkerProgram(command, device_environment(number))

    def _launch(self) -> None:
        folder = self.folder
        key, path = folder.key.read_text().strip(), str(folder.address)
        command, log = self._server_command(path), folder.logs / "server.log"
        self._server = ChildProcess(command, key=key, log=log)
        self._workers = Supervisor(
            lambda number: self._program(number, path), key=key, logs=folder.logs
        )
        self._workers.scale(self.size)

    def _resize(self, size: int) -> None:
        assert self._workers is not None
        self._workers.scale(size)

    def _server_failure(self) -> str | None:
        server = self._server
        if server is None or server.exit_status() is None:
            return None
        return f"its server has ended{said(server.output())}"

    def _worker_failure(self) -> str | None:
        workers = self._workers
        return workers.failure if workers is not None else None

    def _failure(self) -> str | None:
        return self._server_failure() or self._worker_failure()

    def _notes(self) -> list[str]:
        found = [self._server_failure(), self._worker_failure()]
        return [line for text in found if text is not None for line in text.splitlines()]

    def _shut_down(self) -> None:
        if self._server is not None:
            self._server.end()
        if self._workers is not None:
            self._workers.end()
        if self._server is not None:
            self._server.wait(_END_WITHIN)
        self._server = self._workers = None
