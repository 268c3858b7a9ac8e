"""An ssh server on the loopback address, for tests."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

#: The places of the program; it is not in the PATH of every user.
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")

#: How long the server may take to start, in seconds.
START_WITHIN = 20

needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None or os.name != "posix",
    reason="needs an ssh server and ssh (Debian: openssh-server, openssh-client)",
)

_CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized
PidFile {folder}/sshd.pid
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
{more}
"""

_CLIENT_CONFIG = """
Host {names}
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile /dev/null
  HostKeyAlias gt-test
"""


class Sshd:
    """An ssh server of the user that runs the tests; it may be restarted.

    Args:
        folder: where its keys, configurations and log are.
        names: names of hosts that all lead to it.
        more: further lines of its configuration.
    """

    def __init__(self, folder: Path, *names: str, more: str = ""):
        self.folder, self.names, self._more = folder, names or ("login",), more
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        for name in ("host_key", "user_key", "other_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True, timeout=60)
        shutil.copy(folder / "user_key.pub", folder / "authorized")
        self.know("host_key")
        self.client_config = folder / "config"
        self.configure_client(self.port)
        self._process: subprocess.Popen | None = None

    def know(self, name: str | None) -> None:
        """Have clients know this host key, or none."""
        key = (self.folder / f"{name}.pub").read_text() if name else ""
        (self.folder / "known").write_text(f"gt-test {key}" if name else "")

    def configure_client(self, port: int, more: str = "") -> None:
        """Write the configuration of clients, for a port."""
        names = " ".join(self.names)
        text = _CLIENT_CONFIG.format(names=names, port=port, folder=self.folder)
        self.client_config.write_text(text + more)

    @property
    def ssh(self) -> str:
        """The command of ssh that uses this server: a value for GT_SSH."""
        return f"ssh -F {self.client_config}"

    @property
    def log(self) -> str:
        """What the server says."""
        return (self.folder / "sshd.log").read_text()

    def start(self) -> None:
        # It drops privileges into this folder if it runs as root.
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(_CONFIG.format(port=self.port, folder=self.folder, more=self._more))
        command = [SSHD, "-D", "-f", str(config), "-E", str(self.folder / "sshd.log")]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        until = time.monotonic() + START_WITHIN
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert self._process.poll() is None, self.log
                assert time.monotonic() < until, self.log
                time.sleep(0.02)

    def connections(self) -> list[int]:
        """Return the process IDs of its connections."""
        assert self._process is not None
        return children_of(self._process.pid)

    def cut(self) -> None:
        """Kill all connections, but not the server: clients may connect again."""
        for process in self.connections():
            for each in [*children_of(process), process]:
                if name_of(each) == "sshd":
                    kill(each)

    def stop(self) -> None:
        """End the server and all connections."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_WITHIN)
            self._process = None

    def __enter__(self) -> "Sshd":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.cut()
        self.stop()


def kill(process: int) -> None:
    """Kill a process, unless it has ended."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def name_of(process: int) -> str:
    """Return the name of a process's program; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def children_of(process: int) -> list[int]:
    """Return the process IDs of a process's children that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == process and state != "Z":
            found.append(int(path.parent.name))
    return found


def processes_with(text: str) -> list[str]:
    """Return the command lines that contain a text, of processes that run."""
    return list(command_lines_with(text).values())


def command_lines_with(text: str) -> dict[int, str]:
    """Return the command lines that contain a text, by process ID; zombies have none."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if text in line and int(path.parent.name) != os.getpid():
            found[int(path.parent.name)] = line
    return found


def await_none(text: str, limit: float) -> float:
    """Wait until no process's command line contains a text; return the seconds that took."""
    start = time.monotonic()
    while found := processes_with(text):
        assert time.monotonic() < start + limit, found
        time.sleep(0.05)
    return time.monotonic() - start
