"""Tunnels to servers behind a login: addresses that begin with ssh://."""

import os
import subprocess
import time
from pathlib import Path

import gt
import gt.cluster
import pytest
from gt.session.ssh_address import SshAddress
from gt.session.tunnel import close_tunnel, is_tunnel, open_tunnel
from processes import embedded_only, linux_only, run_gt, unsharded_only
from ssh_labs import compute
from sshd import Sshd, needs_sshd, processes_with

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


@needs_sshd
def test_one_connection_is_enough(far):
    local = open_tunnel(far.fixed)
    assert local == open_tunnel(far.fixed) and len(far.sshd.connections()) == 1
    with gt.Session(local, key_file=far.key) as session:
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        x = gt.arange(1 << 18)
        assert x.numpy().sum() == (1 << 18) * ((1 << 18) - 1) // 2
        assert not session.closed
    done = run_gt("top", "--once", local, "--key-file", far.key)
    assert (done.returncode, done.stderr) == (0, "") and "worker" in done.stdout
    assert len(far.sshd.connections()) == 1
    folder = Path(local.removeprefix("file://")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    close_tunnel(far.fixed)
    assert not folder.exists()


@needs_sshd
def test_a_published_address_brings_its_key(far):
    local = open_tunnel(far.published)
    place = Path(local.removeprefix("file://")).with_name("key")
    # The key is in memory alone.
    assert os.readlink(place).startswith(f"/proc/{os.getpid()}/fd/")
    with gt.Session(local):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
    key = Path(far.key).read_text().strip()
    assert not [line for line in processes_with(far.mark) if key in line]
    assert key not in far.sshd.log


@needs_sshd
def test_another_cluster_in_the_place_of_the_first(far, tmp_path):
    folder = tmp_path / "cluster"
    address = f"ssh://{far.mark}/file://{folder}/address"
    for _ in range(2):
        with gt.cluster.Local(1, threads=1, folder=folder):
            with gt.Session(open_tunnel(address)):
                assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        (folder / "key").unlink()


@needs_sshd
def test_two_programs_over_the_users_own_login(far, tmp_path):
    control = tmp_path / "control"
    far.sshd.configure_client(far.sshd.port, f"  ControlPath {control}\n")
    options = ["-F", str(far.sshd.client_config), "-M", "-N", "-n"]
    master = subprocess.Popen(["ssh", *options, far.mark], stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 20
        while not control.exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        users = [
            far.user(far.published),
            far.user(far.fixed, far.key),
        ]
        assert [compute(user) for user in users] == [3, 3]
        assert len(far.sshd.connections()) == 1
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
def test_two_programs_with_a_login_each(far):
    users = [far.user(far.published), far.user(far.published)]
    assert [compute(user) for user in users] == [3, 3]
    assert len(far.sshd.connections()) == 2
    users[0].kill()
    users[0].communicate()
    assert compute(users[1]) == 6
    users[1].kill()
    users[1].communicate()


@needs_sshd
def test_a_forked_child_opens_its_own(far):
    first = open_tunnel(far.published)
    child = os.fork()
    if child == 0:
        is_other = open_tunnel(far.published) != first
        close_tunnel(far.published)
        os._exit(0 if is_other else 1)
    assert os.waitpid(child, 0)[1] == 0
    with gt.Session(first):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]


@needs_sshd
@pytest.mark.parametrize("limits", ["", "PermitTTY no"])
def test_an_account_without_commands_forwards(far, tmp_path, monkeypatch, limits):
    more = f"ForceCommand /bin/false\n{limits}"
    with Sshd(tmp_path / "other", far.mark, more=more) as sshd:
        monkeypatch.setenv("GT_SSH", sshd.ssh)
        with gt.Session(open_tunnel(far.fixed), key_file=far.key):
            assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        close_tunnel(far.fixed)


@needs_sshd
def test_failures_name_the_address_and_what_ssh_says(far, tmp_path):
    message = far.fails(f"ssh://{far.mark}/localhost:1", "no server answers there")
    assert "refused" in message
    message = far.fails(f"ssh://{far.mark}/file:///no/such", "no server publishes its address")
    assert "/no/such" in message.split("\n", 1)[1]
    far.sshd.know(None)
    message = far.fails(far.fixed, "ssh ended with status 255")
    assert "Host key verification failed" in message
    far.sshd.know("host_key")
    (far.sshd.folder / "user_key").write_text((far.sshd.folder / "other_key").read_text())
    (far.sshd.folder / "user_key.pub").write_text((far.sshd.folder / "other_key.pub").read_text())
    assert "Permission denied" in far.fails(far.fixed, "ssh ended with status 255")
    far.sshd.stop()
    assert "refused" in far.fails(far.fixed, "ssh ended with status 255")
