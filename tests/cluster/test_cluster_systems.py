"""`gt cluster up` of the systems that other programs run."""

import os
import shutil
import signal

import pytest
from cluster_command import command, until
from gt.cluster.started import read_record
from processes import embedded_only, linux_only, one_engine_only, run_python, unsharded_only
from slurm_running import running_slurm
from sshd import await_none, needs_sshd

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only, linux_only]


def words(arguments: dict) -> list[str]:
    """Return arguments of a class as options."""
    found = []
    for name, value in arguments.items():
        option = f"--{name.replace('_', '-')}"
        values = value if isinstance(value, list) else [value]
        if isinstance(value, dict):
            values = [f"{key}={of}" for key, of in value.items()]
        found += [f"{option}={of}" for of in values]
    return found


def computes(text: str) -> None:
    """Check that the program that `up` shows computes."""
    connect = next(line for line in text.splitlines() if "a program:" in line).split()[-1]
    done = run_python(f"import gt\n{connect}\nprint((gt.ones(2) + 1).tolist())")
    assert (done.stdout, done.stderr) == ("[2.0, 2.0]\n", "")


@needs_sshd
def test_ssh(hosts, clusters, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    shutil.copy(hosts.sshd.client_config, home / ".ssh" / "config")
    monkeypatch.setenv("HOME", str(home))
    given = hosts.arguments(2)
    del given["connect"], given["name"]
    status, text = command("up", "ssh", *words(given))
    assert status == 0, text
    computes(text)
    assert "2 workers serve, of 2 hosts" in command("status")[1]
    status, text = command("scale", "ssh", "9")
    assert status == 1 and "the number of hosts is 9, but there are 2" in text
    assert "it was not scaled to 9" in command("status")[1]
    assert command("scale", "ssh", "1")[0] == 0
    until(lambda: "1 workers serve, of 1 host;" in command("status")[1])
    assert "it was not scaled" not in command("status")[1]
    assert command("down") == (0, "gt cluster: 'ssh' has ended\n")
    await_none(hosts.mark, 10)
    status, text = command("up", "ssh", *words(given), "--adapt", "0:3")
    assert status == 1 and "maximum is 3, but there are 2 hosts" in text
    await_none(hosts.mark, 10)
    assert list(clusters.iterdir()) == []


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with running_slurm(tmp_path_factory.mktemp("slurm")) as system:
        yield system


def test_slurm(slurm, clusters):
    small = ["--engine=native", "--worker-options=--memory=50MB"]
    status, text = command("up", "slurm", "--nodes=1", *small)
    assert status == 0, text
    computes(text)
    assert "1 workers serve, of 1 node" in command("status")[1]
    assert "server" in command("logs")[1]
    assert command("down") == (0, "gt cluster: 'slurm' has ended\n")
    assert slurm.active_jobs() == [] and list(clusters.iterdir()) == []
    # With an owner, as it adapts.
    status, text = command("up", "slurm", "--nodes=1", *small, "--adapt=1:2")
    assert status == 0, text
    record = read_record("slurm")
    assert record.is_owned() and "1 workers serve, of 1 node" in command("status")[1]
    # Its end is that of its jobs.
    os.kill(record.process, signal.SIGKILL)
    until(lambda: not record.is_owned())
    assert command("down") == (0, "gt cluster: 'slurm' has ended\n")
    assert slurm.active_jobs() == [] and list(clusters.iterdir()) == []
