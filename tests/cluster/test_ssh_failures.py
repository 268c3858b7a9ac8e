"""Starts of gt.cluster.Ssh that fail: one line says why, and nothing is left."""

import os
import shlex
import signal
import socket
import sys
import threading
import time

import gt
import gt.cluster
import pytest
from processes import (
    embedded_only,
    linux_only,
    unsharded_only,
)
from ssh_labs import GONE_WITHIN
from sshd import await_none, needs_sshd

pytestmark = [embedded_only, unsharded_only, linux_only]


@needs_sshd
def test_logins_that_fail(hosts):
    refused = {"config": [str(hosts.sshd.client_config)]}
    refused["client_keys"] = [str(hosts.sshd.folder / "other_key")]
    message = hosts.refuses("the login is refused", connect=refused)
    assert hosts.hosts[0] in message.splitlines()[0] and "Permission denied" in message
    hosts.sshd.know(None)
    assert "not trusted" in hosts.refuses("the host key is unknown, or has changed")
    hosts.sshd.know("other_key")
    hosts.refuses("the host key is unknown, or has changed")
    hosts.sshd.know("host_key")
    hosts.refuses("the host is unknown", hosts=["no-such-host.invalid"], connect={"config": None})
    hosts.sshd.stop()
    hosts.refuses("no ssh server listens there")
    with socket.create_server(("127.0.0.1", hosts.sshd.port)):
        limit = {"config": [str(hosts.sshd.client_config)], "login_timeout": 1}
        hosts.refuses("no answer", connect=limit)


@needs_sshd
def test_hosts_that_lack_something(hosts, tmp_path):
    message = hosts.refuses("'/no/python' cannot be run there", python="/no/python")
    assert "/no/python" in message.splitlines()[1]
    alone = f"{shlex.quote(sys.executable)} -I -S"
    hosts.refuses("there has no gt: pip install gt-tensor", python=alone, environment={})
    other = tmp_path / "other"
    other.write_text(
        '#!/bin/sh\necho Welcome\necho \'{"version": "0.0.1", "gpus": 0, "folder": "/", '
        '"published": null}\'\n'
    )
    other.chmod(0o755)
    message = hosts.refuses("gt there has the version 0.0.1, and here", python=str(other))
    assert gt.__version__ in message


@needs_sshd
def test_programs_that_fail(hosts):
    message = hosts.refuses("the server ended (exit status", server_options=["--policy=/no/policy"])
    assert "/no/policy" in message
    message = hosts.refuses("the program of its workers ended", engine="nonsense")
    assert "nonsense" in message.split("\n", 1)[1]


@needs_sshd
def test_an_interrupted_start_leaves_nothing(hosts):
    timer = threading.Timer(1.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        with hosts.cluster():
            time.sleep(60)
    await_none(hosts.mark, GONE_WITHIN)


@needs_sshd
def test_a_folder_has_one_cluster(hosts, tmp_path):
    folder = tmp_path / f"{hosts.mark}-folder"
    with hosts.cluster(1, remote_folder=str(folder)):
        with pytest.raises(gt.cluster.ClusterError, match="another cluster has the folder"):
            hosts.cluster(1, remote_folder=str(folder)).start()
    assert (folder / "logs" / "server.log").exists()
    # The address of a server that was killed is no obstacle.
    (folder / "address").write_text("127.0.0.1:1\n")
    with hosts.cluster(1, remote_folder=str(folder)) as cluster:
        assert len(cluster.status().workers) == 1
