"""gt.cluster.Ssh: command lines and bad input, and clusters over an ssh server on this machine."""

import json
import os
import secrets
import shlex
import signal
import stat
import time
from pathlib import Path

import gt
import gt.cluster
import pytest
from gt.cluster.ssh.commands import RemotePython, labels
from gt.cluster.ssh.host import checked_host
from processes import embedded_only, linux_only, start_program, unsharded_only
from ssh_labs import GONE_WITHIN, folders
from sshd import await_none, needs_sshd, processes_with

pytestmark = [embedded_only, unsharded_only, linux_only]


def test_hosts_are_parsed():
    assert checked_host("node1") == {"host": "node1"}
    assert checked_host("ada@node1:2222") == {"host": "node1", "username": "ada", "port": 2222}
    assert checked_host("[::1]:22") == {"host": "::1", "port": 22}
    for bad in ("", "-oProxyCommand=x", "a b", "node:port", "node:70000", "a@-b", 3):
        with pytest.raises(ValueError, match="is not a host"):
            checked_host(bad)


def test_labels_differ():
    assert labels(["ada@n1:22", "n1", "n1", "[::1]"]) == ["n1-22", "n1", "n1-2", "--1"]


def test_a_command_survives_any_login_shell():
    line = RemotePython("~/my/python", {"A": "b c'd"}).line(["-m", "x", "y z"], "/log file")
    assert shlex.split(line)[:3] == ["exec", "sh", "-c"]
    (inner,) = shlex.split(line)[3:]
    assert inner == (
        "echo \"gt-pid $$\"; exec env 'A=b c'\"'\"'d' ~/my/python -m x 'y z' >> '/log file' 2>&1"
    )


def test_the_script_has_all_commands_and_no_key():
    more = {"workers_per_host": 2, "engine": "numpy", "remote_folder": "/f", "lease": 30}
    cluster = gt.cluster.Ssh(["a", "b"], **more)
    first, *others = cluster.script().splitlines()
    assert first.startswith("ssh a ") and "-m gt.server -H 0.0.0.0 -p 0" in first
    assert "--publish /f/address --workers 4 --key-file - --until-eof --silence 30" in first
    assert [line.split()[1] for line in others] == ["a", "b"]
    for line in others:
        assert "-m gt.cluster.node --address ADDRESS" in line and "--backend=numpy" in line


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"hosts": []}, "hosts is"),
        ({"hosts": "node1"}, "hosts is 'node1'"),
        ({"hosts": ["a b"]}, "'a b' is not a host"),
        ({"hosts": ["a"], "server_host": "b"}, "server_host is 'b', expected one of a"),
        ({"hosts": ["a"], "workers_per_host": 0}, "workers_per_host is 0"),
        ({"hosts": ["a"], "lease": 0}, "lease is 0"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        gt.cluster.Ssh(**arguments)


@needs_sshd
def test_a_cluster_computes_and_leaves_nothing(hosts):
    with hosts.cluster() as cluster:
        status = cluster.status()
        assert (status.kind, status.wanted, len(status.workers), status.notes) == ("ssh", 2, 2, [])
        assert cluster.script().count("\n") == 3 and "ADDRESS" not in cluster.script()
        with gt.Session(cluster.address):
            assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        logs = cluster.logs()
        assert "listening" in logs["server"]
        assert f"{hosts.mark}a-0" in logs and f"{hosts.mark}b-0" in logs
        assert all(text.count("\n") <= 1 for text in cluster.logs(1).values())
        key = cluster.folder.key.read_text().strip()
        assert stat.S_IMODE(cluster.folder.key.stat().st_mode) == 0o600
        (remote,) = folders(hosts.mark)
        assert stat.S_IMODE(remote.stat().st_mode) == 0o700
        assert not [line for line in processes_with(hosts.mark) if key in line]
        assert not any(key in text for text in [*logs.values(), cluster.script(), hosts.sshd.log])
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                assert key.encode() not in path.read_bytes()
            except OSError:
                pass
        # Exactly what the script shows runs there.
        lines = {line for line in processes_with(hosts.mark) if "gt.server" in line}
        assert any(line.split(" -m ", 1)[1] in cluster.script() for line in lines)
    assert await_none(hosts.mark, GONE_WITHIN) < GONE_WITHIN
    assert not list(folders(hosts.mark))
    assert not cluster.is_running


@needs_sshd
def test_through_the_tunnel_alone(hosts):
    # Nothing but this machine itself reaches the server.
    with hosts.cluster(1, tunnel=True, listen="127.0.0.1") as cluster:
        server = cluster.folder.address.read_text().strip()
        assert server.startswith("127.0.0.1:") and server not in cluster.script()
        assert cluster._is_direct(cluster._plan.address) and not cluster._is_direct("127.0.0.1:1")
        with gt.Session(cluster.address):
            x = gt.arange(1 << 18)
            assert x.numpy().sum() == (1 << 18) * ((1 << 18) - 1) // 2


@needs_sshd
def test_hosts_are_drained_and_added(hosts):
    with hosts.cluster(3) as cluster:
        with gt.Session(cluster.address):
            x = gt.arange(6) * 2
            assert x.sum().item() == 30
            cluster.scale(1)
            await_workers(cluster, 1)
            assert cluster.status().wanted == 1
            assert (x + 1).tolist() == [1, 3, 5, 7, 9, 11]
            cluster.scale(3)
            await_workers(cluster, 3)
            # Twice at once: those that leave keep their names.
            cluster.scale(2)
            cluster.scale(3)
            await_workers(cluster, 3)
            assert x.sum().item() == 30
            assert cluster.status().notes == []
            with pytest.raises(ValueError, match="4, but there are 3"):
                cluster.scale(4)


def await_workers(cluster, count: int) -> None:
    until = time.monotonic() + 60
    while len(cluster.status().workers) != count:
        assert time.monotonic() < until, (cluster.status(), cluster.logs())
        time.sleep(0.1)


def owner(kind: str, arguments: dict, has_child: bool = False):
    """Start a program that owns a cluster, and perhaps has a child that outlives it."""
    process = start_program("cluster/cluster_owner")
    process.stdin.write(json.dumps([kind, arguments, has_child]) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line == "6.0\n", process.stderr.read()
    return process


@needs_sshd
@pytest.mark.parametrize("has_child", [False, True])
def test_a_killed_owner_leaves_nothing(hosts, has_child):
    process = owner("Ssh", hosts.arguments(), has_child)
    try:
        assert len(processes_with(hosts.mark)) >= 5
        process.kill()
        await_none(hosts.mark, GONE_WITHIN)
    finally:
        process.kill()
        process.communicate()


def test_a_local_cluster_ends_before_a_forked_child_of_its_owner(tmp_path):
    folder = tmp_path / f"t{secrets.token_hex(4)}"
    process = owner("Local", {"workers": 1, "threads": 1, "folder": str(folder)}, True)
    try:
        assert len(processes_with(str(folder))) == 2
        process.kill()
        await_none(str(folder), GONE_WITHIN)
    finally:
        process.kill()
        process.communicate()


@needs_sshd
def test_a_stopped_owner_loses_its_lease(hosts):
    process = owner("Ssh", hosts.arguments(lease=2))
    try:
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        assert processes_with(hosts.mark)
        await_none(hosts.mark, 2 + GONE_WITHIN)
    finally:
        process.kill()
        process.communicate()


@needs_sshd
def test_a_cut_connection_leaves_nothing(hosts):
    with hosts.cluster() as cluster:
        address = cluster.folder.address
        assert address.exists()
        hosts.sshd.cut()
        await_none(
            f"gt.server -H 0.0.0.0 -p 0 --publish {list(folders(hosts.mark))[0]}", GONE_WITHIN
        )
        await_none(hosts.mark, GONE_WITHIN)
        until = time.monotonic() + 10
        while address.exists() or len(cluster.status().notes) < 3:
            assert time.monotonic() < until, cluster.status()
            time.sleep(0.05)
        assert all("the connection is lost" in note for note in cluster.status().notes)
        assert "not reached" in str(cluster.logs())


@needs_sshd
def test_a_lost_host_is_started_again_by_scale(hosts):
    with hosts.cluster() as cluster:
        (node,) = [
            line
            for line in processes_with(f"--name {hosts.mark}b")
            if line.count("gt.cluster.node")
        ][:1]
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if path.read_bytes().replace(b"\0", b" ").decode().strip() == node:
                os.kill(int(path.parent.name), signal.SIGKILL)
        until = time.monotonic() + 20
        while not cluster.status().notes:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert "the program of its workers ended (signal 9)" in cluster.status().notes[0]
        cluster.scale(2)
        await_workers(cluster, 2)
        assert cluster.status().notes == []


@needs_sshd
def test_a_forked_child_owns_nothing(hosts):
    with hosts.cluster(1) as cluster:
        child = os.fork()
        if child == 0:
            cluster.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert len(cluster.status().workers) == 1
