"""Clusters that have an owner, or a record that is not as it should be."""

import json
import os
import shutil
import signal
import subprocess
import sys

import gt.cluster
import pytest
from cluster_command import command, processes_of, runs, until, words_of
from gt.cluster import options
from gt.cluster.command import main
from gt.cluster.requests import SizeRequest, answer, ask, asked
from gt.cluster.started import clusters_folder, read_record
from processes import embedded_only, linux_only, one_engine_only, unsharded_only

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only, linux_only]


def test_a_key_in_the_environment_is_not_that_of_the_cluster(clusters, monkeypatch):
    monkeypatch.setenv("GT_KEY", "gt1-" + "0" * 64)
    status, text = command("up", "local", "--workers", "1")
    assert status == 0, text
    assert "1 workers serve, of 1 worker" in command("status")[1]
    with gt.cluster.Local(workers=1) as cluster:
        assert len(cluster.status().workers) == 1
        assert cluster.key_file == str(cluster.folder.path / "key")


def test_the_owner_follows_its_record(clusters):
    assert command("up", "local", "--workers", "1")[0] == 0
    owner = read_record("local").process
    (clusters / "local" / "up.json").unlink()
    until(lambda: not runs(owner))
    assert processes_of(clusters) == []
    assert command("down", "local")[0] == 0
    assert list(clusters.iterdir()) == []


def test_another_machine_does_not_end_it(clusters):
    assert command("up", "local", "--workers", "1")[0] == 0
    path = clusters / "local" / "up.json"
    record = path.read_text()
    path.write_text(json.dumps({**json.loads(record), "host": "elsewhere"}))
    for words in (["down"], ["scale", "local", "2"]):
        status, text = command(*words)
        assert status == 1 and "the owner of the cluster 'local' runs on elsewhere" in text
    assert "its owner is on elsewhere" in command("status")[1]
    # The process is another one after the machine has started again.
    path.write_text(json.dumps({**json.loads(record), "boot": "another"}))
    assert "its owner has ended" in command("status")[1]
    path.write_text(record)
    assert command("down")[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_start_that_is_stopped_leaves_nothing(clusters, number, tmp_path, monkeypatch):
    """An engine that is not imported keeps the start from being complete."""
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", f"{os.environ.get('PYTHONPATH', '')}:{tmp_path}")
    line = [sys.executable, "-m", "gt", "cluster", "up", "local", "--workers=1"]
    with subprocess.Popen([*line, "--engine=slow:Slow"], stderr=subprocess.PIPE, text=True) as up:
        until((clusters / "local" / "address").exists)
        owner = read_record("local").process
        assert processes_of(clusters)
        up.send_signal(number)
        said = up.communicate(timeout=60)[1]
    if number == signal.SIGKILL:
        status, said = command("down")
        assert status == 0
    else:
        assert "gt cluster: stopped" in said
    assert "was killed" not in said and not runs(owner)
    assert processes_of(clusters) == [] and list(clusters.iterdir()) == []


def test_a_killed_server_is_shown(clusters):
    assert command("up", "local", "--workers", "1")[0] == 0
    (server,) = [of for of in processes_of(clusters) if "gt.server" in words_of(of)]
    os.kill(server, signal.SIGKILL)
    until(lambda: "its server has ended" in command("status")[1])


def test_a_damaged_record_hides_no_other(clusters):
    assert command("up", "local", "--workers", "0", "--name", "good")[0] == 0
    assert command("up", "local", "--workers", "0", "--name", "bad")[0] == 0
    owner = read_record("bad").process
    (clusters / "bad" / "up.json").write_text("{")
    (clusters / "gone" / "logs").mkdir(parents=True)
    status, text = command("status")
    assert status == 1 and "local cluster 'good'" in text
    assert "up.json is damaged" in text and "`gt cluster down bad` removes it" in text
    status, text = command("down", "bad")
    assert status == 0 and "is damaged" in text
    until(lambda: not runs(owner))
    assert command("down", "gone") == (0, "gt cluster: 'gone' has ended\n")
    (clusters / "other").mkdir()
    (clusters / "other" / "cluster.json").write_text("{}")
    status, text = command("down", "other")
    assert status == 1 and "gt.cluster.Slurm.attach(folder).close() ends it" in text
    assert sorted(path.name for path in clusters.iterdir()) == ["good", "other"]


def test_an_answer_is_that_of_the_request(tmp_path):
    with pytest.raises(gt.cluster.ClusterError, match="the owner of the cluster has ended"):
        ask(tmp_path, 3, lambda: False)
    request = asked(tmp_path)
    assert request.size == 3 and asked(tmp_path) is None
    answer(tmp_path, SizeRequest("another", 3), "")
    with pytest.raises(gt.cluster.ClusterError, match="has ended"):
        ask(tmp_path, 4, lambda: False)

    def owner():
        request = asked(tmp_path)
        if request is not None:
            answer(tmp_path, request, "no room")
        return True

    with pytest.raises(gt.cluster.ClusterError, match="no room"):
        ask(tmp_path, 5, owner)


@pytest.mark.parametrize(
    "words, message",
    [
        (["up", "local", "--adapt", "8:1"], "expected MINIMUM <= MAXIMUM"),
        (["up", "local", "--adapt", "0:0"], "expected MINIMUM <= MAXIMUM"),
        (["up", "local", "--timeout", "0"], "expected more than 0 seconds"),
        (["up", "local", "--timeout", "nan"], "expected more than 0 seconds"),
        (["up", "local", "--threads", "0"], "expected 1 or more"),
        (["logs", "--lines", "0"], "expected 1 or more"),
        (["scale", "mine", "--", "-1"], "expected 0 or more"),
    ],
)
def test_values_are_checked_when_they_are_read(words, message, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


def test_the_script_is_that_of_up(clusters, capsys):
    assert main(["up", "slurm", "--name", "mine", "--script"]) == 0
    kept = capsys.readouterr().out
    assert "--job-name=mine" in kept and f"{clusters}/mine" in kept and "--lease" not in kept
    assert main(["up", "slurm", "--adapt", "1:2", "--script"]) == 0
    assert "--lease" in capsys.readouterr().out
    assert main(["up", "local", "--workers", "1", "--script"]) == 0
    assert f"file://{clusters}/local/address" in capsys.readouterr().out
    assert not clusters.exists()


def test_the_folder_of_clusters_is_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GT_CLUSTERS", "mine")
    assert clusters_folder() == tmp_path / "mine"


def test_paths_with_spaces_are_quoted(monkeypatch, tmp_path):
    monkeypatch.setenv("GT_CLUSTERS", str(tmp_path / "a folder"))
    status, text = command("up", "local", "--workers", "0")
    assert status == 0 and f"gt top 'file://{tmp_path}/a folder/local/address'\n" in text
    assert command("down")[0] == 0
    shutil.rmtree(tmp_path / "a folder")


def test_options_are_texts():
    assert "tolerations" not in options.arguments(gt.cluster.Kubernetes)
    assert "labels" in options.arguments(gt.cluster.Kubernetes)
    assert "runtime_env" not in options.arguments(gt.cluster.Ray)
    assert "hosts" in options.arguments(gt.cluster.Ssh)
