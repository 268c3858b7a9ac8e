"""Network namespaces as machines: each has its own address, processes and cable."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import gt.worker
from bad_cable import BadCable
from gt.cluster.folder import ClusterFolder
from gt.cluster.status import read_status

#: The network of the machines; another one for each process that runs tests.
NETWORK = f"10.{100 + os.getpid() % 150}"
#: The address of the bridge, on which the server is.
SERVER = f"{NETWORK}.255.1"

START = Path(gt.worker.__file__).with_name("start.py")


def missing(slow_cables: bool = False) -> str | None:
    """Return why this system cannot have such machines, with `slow_cables`, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "unshare", "tc") if slow_cables else ("ip", "unshare"):
        if shutil.which(program) is None:
            return f"there is no `{program}` (apt-get install iproute2 util-linux)"
    name = f"gtp{os.getpid() % 1000000}"
    inner = ("ip", "netns", "exec", name)
    unshare = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "true")
    tries = [
        ("ip", "netns", "add", name),
        ("ip", "link", "add", f"{name}b", "type", "bridge"),
        ("ip", "link", "add", f"{name}c", "type", "veth", "peer", "name", "e0", "netns", name),
        ("ip", "link", "set", f"{name}c", "master", f"{name}b"),
        ("ip", "-n", name, "route", "add", "blackhole", "192.0.2.1"),
        (*inner, *unshare),
    ]
    if slow_cables:
        limits = ("rate", "1mbit", "burst", "64kb", "latency", "400ms")
        tries.append(("tc", "-n", name, "qdisc", "add", "dev", "e0", "root", "tbf", *limits))
    try:
        for command in tries:
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                return f"`{' '.join(command)}` fails here: {made.stderr.strip()}"
    finally:
        for undo in (("netns", "delete", name), ("link", "delete", f"{name}b")):
            subprocess.run(["ip", *undo], capture_output=True, check=False)
    return None


def run(*command: str) -> str:
    """Run a command; return its output."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@dataclass
class Machine:
    """A namespace with workers."""

    name: str
    cable: str
    address: str
    workers: list[subprocess.Popen] = field(default_factory=list)

    def start(self, name: str, server: str, key: str, *options: str) -> None:
        """Start a worker there. It ends when its standard input does."""
        command = [
            *("ip", "netns", "exec", self.name),
            *("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"),
            *(sys.executable, str(START), "--address", server, "--id", name),
            *("--threads", "1", "--memory", "100MB", "--wait", "60", *options),
            *("--key-file", "-", "--until-eof"),
        ]
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        worker.stdin.write(key + "\n")
        worker.stdin.flush()
        self.workers.append(worker)

    def pull(self) -> None:
        """Pull the cable."""
        run("ip", "link", "set", self.cable, "down")

    def plug(self) -> None:
        """Plug the cable in again."""
        run("ip", "link", "set", self.cable, "up")

    def drop_to(self, other: Machine) -> None:
        """Drop what this machine sends to another one, in this direction alone."""
        run("ip", "-n", self.name, "route", "add", "blackhole", other.address)

    def connect_slowly(self, other: Machine, megabits: int) -> SlowCable:
        """Lay a slow cable to another machine, which takes all that the two send each other."""
        cable = SlowCable(self, f"slow{other.name[-6:]}")
        run(
            *("ip", "-n", self.name, "link", "add", cable.name, "type", "veth", "peer"),
            *("name", f"slow{self.name[-6:]}", "netns", other.name),
        )
        for near, far in ((self, other), (other, self)):
            inside = f"slow{far.name[-6:]}"
            run("ip", "-n", near.name, "link", "set", inside, "up")
            run("ip", "-n", near.name, "route", "add", f"{far.address}/32", "dev", inside)
            run(
                *("tc", "-n", near.name, "qdisc", "add", "dev", inside, "root", "tbf"),
                *("rate", f"{megabits}mbit", "burst", "64kb", "latency", "400ms"),
            )
        return cable

    def connect_badly(self, other: Machine, delay: float, lose_each: int) -> BadCable:
        """Lay a bad cable to another machine, which takes all that the two send each other."""
        names = (f"bad{other.name[-8:]}", f"bad{self.name[-8:]}")
        cable = BadCable(names, delay, lose_each)
        for near, far, inside in ((self, other, names[0]), (other, self, names[1])):
            run("ip", "link", "set", inside, "netns", near.name)
            run("ip", "-n", near.name, "link", "set", inside, "up")
            route = ("route", "add", f"{far.address}/32", "dev", inside, "src", near.address)
            run("ip", "-n", near.name, *route)
        return cable

    def crash(self) -> None:
        """Kill all that runs there, without a word on the network."""
        self.pull()
        self.end()

    def end(self) -> None:
        """Kill all that runs there."""
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.wait()
            worker.stdin.close()
        self.workers.clear()


@dataclass
class SlowCable:
    """A cable between two machines, as one of them sees it."""

    machine: Machine
    name: str

    def carried(self) -> int:
        """Return the bytes that it has carried, in both directions."""
        shown = run("ip", "-n", self.machine.name, "-s", "-j", "link", "show", "dev", self.name)
        counted = json.loads(shown)[0]["stats64"]
        return counted["rx"]["bytes"] + counted["tx"]["bytes"]


class Machines:
    """Machines on one switch, and a server beside it."""

    def __init__(self, count: int, folder: Path):
        """Make them; nothing runs yet."""
        self.folder = ClusterFolder(folder)
        self._prefix = f"gt{os.getpid() % 10000}"
        self._bridge = f"{self._prefix}br"
        self.all = [
            Machine(f"{self._prefix}n{n}", f"{self._prefix}c{n}", f"{NETWORK}.{n}.2")
            for n in range(count)
        ]
        self._server: subprocess.Popen | None = None

    def __enter__(self) -> Machines:
        """Connect them, and start the server."""
        run("ip", "link", "add", self._bridge, "type", "bridge")
        run("ip", "addr", "add", f"{SERVER}/16", "dev", self._bridge)
        run("ip", "link", "set", self._bridge, "up")
        for machine in self.all:
            self._connect(machine)
        command = [sys.executable, "-m", "gt.server", "-H", SERVER, "-p", "0"]
        with (self.folder.logs / "server.log").open("w") as log:
            self._server = subprocess.Popen(
                [
                    *(*command, "--publish", str(self.folder.address)),
                    *("--key-file", str(self.folder.key), "--grace", "60"),
                ],
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 30
        while not self.folder.address.exists():
            assert time.monotonic() < until, (self.folder.logs / "server.log").read_text()
            time.sleep(0.02)
        return self

    def _connect(self, machine: Machine) -> None:
        inside = "eth0"
        run("ip", "netns", "add", machine.name)
        run(
            *("ip", "link", "add", machine.cable, "type", "veth"),
            *("peer", "name", inside, "netns", machine.name),
        )
        run("ip", "link", "set", machine.cable, "master", self._bridge)
        run("ip", "link", "set", machine.cable, "up")
        inner = ("ip", "-n", machine.name)
        run(*inner, "addr", "add", f"{machine.address}/16", "dev", inside)
        run(*inner, "link", "set", inside, "up")
        run(*inner, "link", "set", "lo", "up")

    def start(self, workers: int, *options: str) -> None:
        """Start a number of workers on each machine."""
        for at, machine in enumerate(self.all):
            for number in range(workers):
                self.start_on(machine, f"m{at}-{number}", *options)

    def start_on(self, machine: Machine, name: str, *options: str) -> None:
        """Start a worker on a machine."""
        server, key = self.folder.address.read_text().strip(), self.folder.key.read_text().strip()
        machine.start(name, server, key, *options)

    def workers(self) -> int:
        """Return how many workers serve."""
        return len(read_status(f"file://{self.folder.address}")["workers"])

    def __exit__(self, *_: object) -> None:
        """End all, and remove the machines."""
        for machine in self.all:
            machine.end()
        if self._server is not None:
            self._server.terminate()
            self._server.wait(20)
        for machine in self.all:
            subprocess.run(["ip", "netns", "delete", machine.name], check=False)
            subprocess.run(
                ["ip", "link", "delete", machine.cable], check=False, stderr=subprocess.DEVNULL
            )
        subprocess.run(["ip", "link", "delete", self._bridge], check=False)


@contextmanager
def machines(count: int, workers: int, folder: Path, options: Sequence[str] = ()) -> Iterator:
    """Yield machines with workers that serve."""
    with Machines(count, folder) as made:
        made.start(workers, *options)
        yield made
