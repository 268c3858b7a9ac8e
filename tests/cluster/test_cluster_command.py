"""`gt cluster`: clusters that outlive the command that starts them."""

import os
import signal

import gt.cluster
import pytest
from cluster_command import command, runs, until
from gt.cluster import kinds, options
from gt.cluster.command import main
from gt.cluster.started import read_record
from processes import embedded_only, linux_only, one_engine_only, run_python, unsharded_only

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only, linux_only]


def test_up_status_scale_logs_down(clusters):
    status, text = command("up", "local", "--workers", "1", "--name", "mine")
    assert status == 0 and text.startswith("gt cluster: 'mine' runs at 127.0.0.1:")
    connect = next(line for line in text.splitlines() if "a program:" in line).split()[-1]
    assert connect == f'gt.connect("file://{clusters}/mine/address")'
    done = run_python(f"import gt\n{connect}\nprint((gt.ones(2) + 1).tolist())")
    assert (done.stdout, done.stderr) == ("[2.0, 2.0]\n", "")
    assert "1 workers serve, of 1 worker; 0 sessions" in command("status")[1]
    assert command("scale", "mine", "2") == (0, "gt cluster: 'mine' is to have 2\n")
    until(lambda: "2 workers serve, of 2 workers" in command("status", "mine")[1])
    assert "gt worker: 1 serves" in command("logs")[1]
    status, text = command("scale", "mine", "-1")
    assert status == 2 and "expected 0 or more" in text
    status, text = command("up", "local", "--name", "mine")
    assert status == 1 and "is there already" in text
    # Its processes do not end with the commands, and end with `down`.
    owner = read_record("mine").process
    assert command("down") == (0, "gt cluster: 'mine' has ended\n")
    assert not runs(owner)
    assert not (clusters / "mine").exists()
    assert command("status") == (0, "gt cluster: there is no cluster\n")


def test_an_owner_that_was_killed_is_told(clusters):
    assert command("up", "local", "--workers", "1")[0] == 0
    os.kill(read_record("local").process, signal.SIGKILL)
    until(lambda: "its owner has ended" in command("status")[1])
    assert command("scale", "local", "2")[0] == 1
    assert command("down")[0] == 0


def test_a_failed_start_leaves_nothing(clusters):
    status, text = command("up", "local", "--engine", "nosuch")
    assert status == 1
    assert "the local cluster 'local' did not start: worker 0 failed 3 times" in text
    assert "there is no engine 'nosuch'" in text
    assert list(clusters.iterdir()) == []


def test_what_is_not_there_is_named(clusters):
    assert "there is no cluster 'nosuch'" in command("down", "nosuch")[1]
    assert "there is no cluster" in command("down")[1]
    assert "expected 1 to 40 of a-z" in command("up", "local", "--name", "a b")[1]
    assert "expected MINIMUM:MAXIMUM" in command("up", "local", "--adapt", "3")[1]
    assert command("up", "nosuch")[0] == 2


def test_it_adapts(clusters):
    status, text = command("up", "local", "--workers", "1", "--adapt", "0:2", "--idle", "1")
    assert status == 0, text
    until(lambda: "0 workers serve" in command("status")[1])


@pytest.mark.parametrize("kind", kinds.names())
def test_each_kind_has_its_options(kind, capsys):
    """Each argument is an option, with its documentation."""
    with pytest.raises(SystemExit):
        main(["up", kind, "--help"])
    text = capsys.readouterr().out
    found = kinds.find(kind)
    for name in options.arguments(found):
        assert f"--{name.replace('_', '-')}" in text, name
        assert options.documentation(found, name), name


def test_a_script_is_shown(capsys):
    assert main(["up", "local", "--workers", "1", "--script"]) == 0
    assert "gt.server" in capsys.readouterr().out
    assert main(["up", "slurm", "--nodes", "2", "--partition", "main", "--script"]) == 0
    assert "#SBATCH --nodes=2" in capsys.readouterr().out


def test_names_of_kinds():
    for name in kinds.names():
        assert kinds.find(name).kind == name
    with pytest.raises(gt.cluster.ClusterError, match="there is no kind of cluster 'nosuch'"):
        kinds.find("nosuch")
