"""What tests of ssh run: an ssh server, and clusters on its host or behind it.

`tests/cluster/conftest.py` has the fixtures.
"""

import secrets
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import gt
import gt.cluster
import pytest
from gt.session import tunnel
from gt.session.tunnel import close_tunnel, open_tunnel
from processes import program_command
from sshd import Sshd, await_none

#: How soon nothing is left of a cluster, in seconds.
GONE_WITHIN = 5.0


class ClusterLab:
    """An ssh server, names of hosts that lead to it, and a mark in all command lines there."""

    def __init__(self, sshd: Sshd, mark: str):
        self.sshd, self.mark = sshd, mark
        self.hosts = list(sshd.names)

    def arguments(self, count: int = 2, **more):
        """Return arguments of the class, for the first hosts."""
        packages = str(Path(gt.__file__).parent.parent)
        given = {
            "hosts": self.hosts[:count],
            "name": f"gt-{self.mark}",
            "python": shlex.quote(sys.executable),
            "environment": {"PYTHONPATH": packages},
            "workers_per_host": 1,
            "threads": 1,
            "connect": {"config": [str(self.sshd.client_config)]},
        }
        return {**given, **more}

    def cluster(self, count: int = 2, **more) -> gt.cluster.Ssh:
        return gt.cluster.Ssh(**self.arguments(count, **more))

    def refuses(self, words: str, count: int = 1, **more) -> str:
        """Check that a start fails with these words, and leaves nothing; return the message."""
        with pytest.raises(gt.cluster.ClusterError) as caught:
            self.cluster(count, **more).start(60)
        message = str(caught.value)
        assert words in message.splitlines()[0], message
        await_none(self.mark, GONE_WITHIN)
        assert not list(folders(self.mark))
        return message


def folders(mark: str):
    return Path("~/.cache/gt/clusters").expanduser().glob(f"*{mark}*")


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    pytest.importorskip("asyncssh", reason="needs asyncssh: pip install asyncssh")
    mark = f"t{secrets.token_hex(4)}"
    names = [f"{mark}{letter}" for letter in "abc"]
    with Sshd(tmp_path / "ssh", *names) as sshd:
        # Owners that are killed cannot remove their folders.
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        yield ClusterLab(sshd, mark)
    await_none(mark, 10)
    for path in folders(mark):
        shutil.rmtree(path)


class TunnelLab:
    """An ssh server, the mark in its name, and a cluster behind it."""

    def __init__(self, sshd: Sshd, mark: str, cluster: gt.cluster.Local):
        self.sshd, self.mark, self.cluster = sshd, mark, cluster
        self.path = cluster.folder.address
        self.server = self.path.read_text().strip()
        self.key = str(cluster.folder.key)
        self.fixed = f"ssh://{mark}/{self.server}"
        self.published = f"ssh://{mark}/file://{self.path}"

    def user(self, *arguments: str, **more) -> subprocess.Popen:
        """Start a program that computes through a tunnel."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = program_command("cluster/tunnel_user", *arguments)
        process = subprocess.Popen(command, **pipes, **more)
        assert process.stdout.readline() == "ready\n"
        return process

    def fails(self, address: str, words: str) -> str:
        """Check that no tunnel opens, with these words, and that none is left; return the error."""
        with pytest.raises(ConnectionError) as caught:
            open_tunnel(address)
        message = str(caught.value)
        assert message.startswith(f"{address}: {words}"), message
        await_none(self.mark, 5)
        return message


@pytest.fixture
def far(tmp_path, monkeypatch):
    mark = f"t{secrets.token_hex(4)}"
    with Sshd(tmp_path / "ssh", mark) as sshd, gt.cluster.Local(1, threads=1) as cluster:
        monkeypatch.setenv("GT_SSH", sshd.ssh)
        yield TunnelLab(sshd, mark, cluster)
        for address in list(tunnel._TUNNELS):
            close_tunnel(address)
        await_none(mark, 10)


def compute(process: subprocess.Popen) -> float:
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def await_loss_of_server(process: subprocess.Popen, server: subprocess.Popen) -> None:
    """Kill the server of a program that computes through a tunnel: the program fails soon."""
    try:
        assert compute(process) == 3
        server.kill()
        _, errors = process.communicate("\n", timeout=60)
        assert process.returncode == 1 and "ConnectionError" in errors
        assert "nothing listens at its address any more" in errors
    finally:
        process.kill()
        process.communicate()
