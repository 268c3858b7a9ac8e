"""Tunnels to servers behind a login: addresses that begin with ssh://."""

import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gt
import gt.cluster
import pytest
from gt.session import tunnel
from gt.session.ssh_address import SshAddress
from gt.session.tunnel import close_tunnel, is_tunnel, open_tunnel
from processes import embedded_only, linux_only, program_command, run_gt, unsharded_only, write_key
from sshd import Sshd, await_none, needs_sshd, processes_with

pytestmark = [embedded_only, unsharded_only, linux_only]


@pytest.mark.parametrize(
    "text, parts",
    [
        ("ssh://login", ("login", None, "localhost:9000", None)),
        ("ssh://login/", ("login", None, "localhost:9000", None)),
        ("ssh://ada@login.org:22/node7", ("ada@login.org", 22, "node7:9000", None)),
        ("ssh://login/node7:4711", ("login", None, "node7:4711", None)),
        ("ssh://[::1]:22/[fe80::1]:4711", ("::1", 22, "[fe80::1]:4711", None)),
        ("ssh://login/file:///a b/address", ("login", None, None, "/a b/address")),
        ("ssh://login/file://~/c/address", ("login", None, None, "~/c/address")),
    ],
)
def test_addresses(text, parts):
    assert is_tunnel(text)
    found = SshAddress.parse(text)
    assert (found.login, found.port, found.server, found.path) == parts


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://-oProxyCommand=x/node:1",
        "ssh://a b/node:1",
        "ssh://login/node:port",
        "ssh://login/-node:1",
        "ssh://login/file://relative",
        "ssh://login;id/node:1",
    ],
)
def test_bad_addresses(text):
    with pytest.raises(ConnectionError, match="is not an address\n  hint: use ssh://LOGIN"):
        open_tunnel(text)


def test_without_ssh(monkeypatch):
    monkeypatch.setenv("GT_SSH", "/no/ssh")
    with pytest.raises(ConnectionError, match="ssh://login: ssh cannot be run: .*/no/ssh"):
        open_tunnel("ssh://login")


class Lab:
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


def compute(process: subprocess.Popen) -> float:
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


@pytest.fixture
def lab(tmp_path, monkeypatch):
    mark = f"t{secrets.token_hex(4)}"
    with Sshd(tmp_path / "ssh", mark) as sshd, gt.cluster.Local(1, threads=1) as cluster:
        monkeypatch.setenv("GT_SSH", sshd.ssh)
        yield Lab(sshd, mark, cluster)
        for address in list(tunnel._TUNNELS):
            close_tunnel(address)
        await_none(mark, 10)


@needs_sshd
def test_one_connection_is_enough(lab):
    local = open_tunnel(lab.fixed)
    assert local == open_tunnel(lab.fixed) and len(lab.sshd.connections()) == 1
    with gt.Session(local, key_file=lab.key) as session:
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        x = gt.arange(1 << 18)
        assert x.numpy().sum() == (1 << 18) * ((1 << 18) - 1) // 2
        assert not session.closed
    done = run_gt("top", "--once", local, "--key-file", lab.key)
    assert (done.returncode, done.stderr) == (0, "") and "worker" in done.stdout
    assert len(lab.sshd.connections()) == 1
    folder = Path(local.removeprefix("file://")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    close_tunnel(lab.fixed)
    assert not folder.exists()


@needs_sshd
def test_a_published_address_brings_its_key(lab):
    local = open_tunnel(lab.published)
    place = Path(local.removeprefix("file://")).with_name("key")
    # The key is in memory alone.
    assert os.readlink(place).startswith(f"/proc/{os.getpid()}/fd/")
    with gt.Session(local):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
    key = Path(lab.key).read_text().strip()
    assert not [line for line in processes_with(lab.mark) if key in line]
    assert key not in lab.sshd.log


@needs_sshd
def test_another_cluster_in_the_place_of_the_first(lab, tmp_path):
    folder = tmp_path / "cluster"
    address = f"ssh://{lab.mark}/file://{folder}/address"
    for _ in range(2):
        with gt.cluster.Local(1, threads=1, folder=folder):
            with gt.Session(open_tunnel(address)):
                assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        (folder / "key").unlink()


@needs_sshd
def test_a_lost_tunnel_is_opened_again(lab):
    process = lab.user(lab.published)
    try:
        assert compute(process) == 3
        for count in (2, 3):
            lab.sshd.cut()
            assert compute(process) == 3 * count
        # The ssh server is away for longer than a client waits for a server that is gone.
        lab.sshd.cut()
        lab.sshd.stop()
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(4)
        lab.sshd.start()
        assert float(process.stdout.readline()) == 12
        assert compute(process) == 15
    finally:
        process.kill()
        process.communicate()


@needs_sshd
def test_a_server_that_is_gone_is_not_waited_for(lab):
    process = lab.user(lab.fixed, lab.key, stderr=subprocess.PIPE)
    try:
        assert compute(process) == 3
        lab.cluster._server._process.kill()
        _, errors = process.communicate("\n", timeout=60)
        assert process.returncode == 1 and "ConnectionError" in errors
        assert "nothing listens at its address any more" in errors
    finally:
        process.kill()
        process.communicate()


@needs_sshd
def test_a_server_that_is_started_again_at_another_port(lab, tmp_path):
    path, state = tmp_path / "address", str(tmp_path / "state")
    key = tmp_path / "key"
    write_key(key, Path(lab.key).read_text())
    publish = ("--publish", str(path), "--key-file", str(key), "--state", state)
    server = [sys.executable, "-m", "gt.server", "-p", "0", *publish]
    worker = [sys.executable, "-m", "gt.worker", "--address", f"file://{path}", "--wait", "60"]
    processes = [subprocess.Popen(server, stdout=subprocess.DEVNULL)]
    try:
        options = ["--key-file", str(key), "--threads", "1"]
        processes.append(subprocess.Popen([*worker, *options], stdout=subprocess.DEVNULL))
        first = await_text(path)
        user = lab.user(f"ssh://{lab.mark}/file://{path}")
        processes.append(user)
        assert compute(user) == 3
        processes[0].kill()
        processes[0].wait()
        processes[0] = subprocess.Popen(server, stdout=subprocess.DEVNULL)
        await_text(path, other_than=first)
        assert compute(user) == 6
    finally:
        for process in reversed(processes):
            process.kill()
            process.communicate()


def await_text(path: Path, other_than: str = "") -> str:
    """Wait until a file has a text, other than an earlier one; return it."""
    until = time.monotonic() + 60
    while not path.exists() or path.read_text() == other_than:
        assert time.monotonic() < until
        time.sleep(0.05)
    return path.read_text()


@needs_sshd
def test_ssh_that_is_killed_is_started_again(lab):
    process = lab.user(lab.published)
    try:
        assert compute(process) == 3
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            line = path.read_bytes().split(b"\0")
            if line[0] == b"ssh" and lab.mark.encode() in line and b"-M" in line:
                os.kill(int(path.parent.name), signal.SIGKILL)
        assert compute(process) == 6
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def short_folder():
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


@needs_sshd
@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_program(lab, how, is_lost, short_folder):
    folder = short_folder
    process = lab.user(lab.published, env={**os.environ, "TMPDIR": str(folder)})
    assert compute(process) == 3 and list(folder.glob("gt-ssh-*"))
    if is_lost:
        lab.sshd.cut()
        lab.sshd.stop()
    process.send_signal(how)
    process.communicate()
    await_none(lab.mark, 5)
    until = time.monotonic() + 5
    while list(folder.glob("gt-ssh-*")):
        assert time.monotonic() < until
        time.sleep(0.05)


@needs_sshd
def test_an_interrupt_of_the_terminal_is_the_programs(lab):
    program = "import signal; signal.signal(signal.SIGINT, lambda *_: None);"
    name = program_command("cluster/tunnel_user")[1]
    program += f"import runpy, sys; sys.argv = ['x', '{lab.published}'];"
    program += f"runpy.run_path({name!r}, run_name='__main__')"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, **pipes)
    try:
        assert process.stdout.readline() == "ready\n"
        assert compute(process) == 3
        before = lab.sshd.connections()
        os.killpg(process.pid, signal.SIGINT)
        assert compute(process) == 6
        assert lab.sshd.connections() == before
    finally:
        process.kill()
        process.communicate()


@needs_sshd
def test_ssh_asks_in_a_terminal(lab):
    path = str(lab.sshd.folder / "user_key")
    change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", path]
    subprocess.run(change, check=True, timeout=60)
    # Without a terminal, it does not wait for an answer.
    assert "Permission denied" in lab.fails(lab.fixed, "ssh ended with status 255")
    command = program_command("cluster/tunnel_user", lab.published)
    terminal, other = os.openpty()
    # A session of its own, whose terminal this is.
    code = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    code += "os.execv(sys.argv[1], sys.argv[1:])"
    line = [sys.executable, "-c", code, *command]
    process = subprocess.Popen(
        line, stdin=other, stdout=other, stderr=other, start_new_session=True
    )
    os.close(other)
    try:
        await_output(terminal, b"passphrase")
        os.write(terminal, b"open sesame\n")
        await_output(terminal, b"ready")
        os.write(terminal, b"\n")
        await_output(terminal, b"3.0")
        # Ctrl-C is the program's.
        os.write(terminal, b"\x03")
        await_output(terminal, b"KeyboardInterrupt")
        process.wait(20)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def await_output(terminal: int, words: bytes) -> None:
    """Read from a terminal until the words have appeared."""
    seen = b""
    while words not in seen:
        ready, _, _ = select.select([terminal], [], [], 40)
        assert ready, seen
        seen += os.read(terminal, 4096)


@needs_sshd
def test_two_programs_over_the_users_own_login(lab, tmp_path):
    control = tmp_path / "control"
    lab.sshd.configure_client(lab.sshd.port, f"  ControlPath {control}\n")
    options = ["-F", str(lab.sshd.client_config), "-M", "-N", "-n"]
    master = subprocess.Popen(["ssh", *options, lab.mark], stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 20
        while not control.exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        users = [lab.user(lab.published), lab.user(lab.fixed, lab.key)]
        assert [compute(user) for user in users] == [3, 3]
        assert len(lab.sshd.connections()) == 1
        # Without the user's login, each makes its own.
        master.kill()
        master.wait()
        assert [compute(user) for user in users] == [6, 6]
        for user in users:
            user.kill()
            user.communicate()
    finally:
        master.kill()
        master.wait()


@needs_sshd
def test_two_programs_with_a_login_each(lab):
    users = [lab.user(lab.published), lab.user(lab.published)]
    assert [compute(user) for user in users] == [3, 3]
    assert len(lab.sshd.connections()) == 2
    users[0].kill()
    users[0].communicate()
    assert compute(users[1]) == 6
    users[1].kill()
    users[1].communicate()


@needs_sshd
def test_a_forked_child_opens_its_own(lab):
    first = open_tunnel(lab.published)
    child = os.fork()
    if child == 0:
        is_other = open_tunnel(lab.published) != first
        close_tunnel(lab.published)
        os._exit(0 if is_other else 1)
    assert os.waitpid(child, 0)[1] == 0
    with gt.Session(first):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]


@needs_sshd
@pytest.mark.parametrize("limits", ["", "PermitTTY no"])
def test_an_account_without_commands_forwards(lab, tmp_path, monkeypatch, limits):
    more = f"ForceCommand /bin/false\n{limits}"
    with Sshd(tmp_path / "other", lab.mark, more=more) as sshd:
        monkeypatch.setenv("GT_SSH", sshd.ssh)
        with gt.Session(open_tunnel(lab.fixed), key_file=lab.key):
            assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        close_tunnel(lab.fixed)


@needs_sshd
def test_failures_name_the_address_and_what_ssh_says(lab, tmp_path):
    message = lab.fails(f"ssh://{lab.mark}/localhost:1", "no server answers there")
    assert "refused" in message
    message = lab.fails(f"ssh://{lab.mark}/file:///no/such", "no server publishes its address")
    assert "/no/such" in message.split("\n", 1)[1]
    lab.sshd.know(None)
    message = lab.fails(lab.fixed, "ssh ended with status 255")
    assert "Host key verification failed" in message
    lab.sshd.know("host_key")
    (lab.sshd.folder / "user_key").write_text((lab.sshd.folder / "other_key").read_text())
    (lab.sshd.folder / "user_key.pub").write_text((lab.sshd.folder / "other_key.pub").read_text())
    assert "Permission denied" in lab.fails(lab.fixed, "ssh ended with status 255")
    lab.sshd.stop()
    assert "refused" in lab.fails(lab.fixed, "ssh ended with status 255")
