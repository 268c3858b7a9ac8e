"""The commands that run on the hosts of an ssh cluster, as text for their shells."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gt.cluster.programs import server_command

#: The line that a remote program prints before it begins, with its process ID.
PID_LINE = "gt-pid"


@dataclass(frozen=True)
class RemotePython:
    """How a program of GT is run on a host.

    Args:
        python: the command of Python there, as its shell reads it, such as `~/gt/bin/python`.
        environment: variables that it is given; `ps` shows them to others there.
    """

    python: str = "python3"
    environment: Mapping[str, str] = field(default_factory=dict)

    def line(self, arguments: Sequence[str], log: str | None = None) -> str:
        """Return the command for a login shell.

        Args:
            arguments: those of Python.
            log: the file to which the output is appended. The process ID is then printed first.
        """
        given = [shlex.quote(f"{name}={value}") for name, value in self.environment.items()]
        words = " ".join(["exec", *(["env", *given] if given else []), self.python])
        line = f"{words} {shlex.join(arguments)}"
        if log is not None:
            line = f'echo "{PID_LINE} $$"; {line} >> {shlex.quote(log)} 2>&1'
        # Whatever the login shell is, sh reads the command.
        return f"exec sh -c {shlex.quote(line)}"


def server_arguments(
    *, listen: str, folder: str, workers: int, silence: float | None, options: Sequence[str]
) -> list[str]:
    """Return the arguments with which Python runs the server."""
    _, *arguments = server_command(
        host=listen, publish=f"{folder}/address", workers=workers, options=options
    )
    return [*arguments, *_input_options(silence)]


def node_arguments(
    *,
    address: str,
    folder: str,
    name: str,
    workers: int | None,
    silence: float | None,
    options: Sequence[str],
) -> list[str]:
    """Return the arguments with which Python runs the workers of a host."""
    count = [] if workers is None else ["--workers", str(workers)]
    return [
        *("-m", "gt.cluster.node", "--address", address, "--logs", f"{folder}/logs"),
        *("--name", name, *count, *options, *_input_options(silence)),
    ]


def _input_options(silence: float | None) -> list[str]:
    """Return the options with which a program has its key and its end from standard input."""
    given = [] if silence is None else ["--silence", f"{silence:g}"]
    return ["--key-file", "-", "--until-eof", *given]


def labels(hosts: Sequence[str]) -> list[str]:
    """Return a name for each host that is good for workers and files; no two are alike."""
    found: list[str] = []
    for host in hosts:
        name = re.sub(r"[^\w.-]", "-", host.rsplit("@", 1)[-1].strip("[]")) or "host"
        number, label = 1, name
        while label in found:
            number += 1
            label = f"{name}-{number}"
        found.append(label)
    return found
