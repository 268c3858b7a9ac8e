"""Starts, scales and ends of clusters at the same time, and what failures leave."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import gt
import gt.cluster
import pytest
from cluster_command import until
from gt.cluster import supervisor as supervisors
from gt.cluster.adaptive import Adaptive, AdaptiveRule
from gt.cluster.base import Cluster
from gt.cluster.folder import ClusterFolder
from gt.cluster.process import ChildProcess
from gt.cluster.slurm.commands import JobState, SlurmRefusal
from gt.cluster.supervisor import Supervisor, WorkerProgram
from processes import embedded_only, linux_only, one_engine_only, unsharded_only

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only, linux_only]


class Nothing(Cluster):
    """A cluster without processes: a test says what fails."""

    kind = "nothing"

    def __init__(self, **more):
        super().__init__(0, None, None, **more)
        self.sizes, self.failures = [], []
        self.begins, self.goes_on = threading.Event(), threading.Event()

    def script(self):
        return ""

    def _launch(self):
        self.begins.set()

    def _await_workers(self, timeout, waited=0.0):
        while not self.goes_on.wait(0.01):
            self._check_open()

    def _resize(self, size):
        if self.failures:
            raise self.failures.pop()
        self.sizes.append(size)

    def _shut_down(self):
        if self.failures:
            raise self.failures.pop()

    def _notes(self):
        return []

    def _failure(self):
        return None


def started():
    cluster = Nothing()
    cluster.goes_on.set()
    return cluster.start()


def test_a_start_that_is_closed_or_scaled():
    cluster, raised = Nothing(), []

    def start():
        try:
            cluster.start()
        except gt.cluster.ClusterError as error:
            raised.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    assert cluster.begins.wait(30)
    with pytest.raises(gt.cluster.ClusterError, match="is being started"):
        cluster.scale(3)
    cluster.close()
    thread.join(30)
    assert len(raised) == 1 and "was closed in its start" in raised[0]
    assert not cluster.is_running and cluster.sizes == []
    with pytest.raises(gt.cluster.ClusterError, match="is not started"):
        cluster.scale(3)


def test_an_end_that_fails_can_be_tried_again():
    cluster = started()
    path = cluster.folder.path
    cluster.failures.append(gt.cluster.ClusterError("no answer"))
    with pytest.raises(gt.cluster.ClusterError, match="no answer"):
        cluster.close()
    assert cluster.is_running and path.exists()
    cluster.close()
    assert not cluster.is_running and not path.exists()


def test_adapting_goes_on_after_an_error(monkeypatch):
    monkeypatch.setattr("gt.cluster.adaptive._EVERY", 0.01)
    cluster = started()
    cluster.failures += [ValueError("a value"), OSError("a file"), RuntimeError("a refusal")] * 2
    seen = []
    monkeypatch.setattr(cluster, "note", lambda what, text: seen.append(text))
    cluster._adaptive = Adaptive(cluster, AdaptiveRule(2, 2, 1))
    until(lambda: cluster.sizes == [2] and seen[-1:] == [None])
    assert [text for text in seen if text is not None and text.endswith("a file")]
    cluster.close()


def test_a_stopped_rule_decides_nothing():
    cluster, stopped = started(), threading.Event()
    stopped.set()
    cluster._adapt_size(stopped, lambda size: size + 1)
    assert cluster.sizes == []
    cluster.close()


def test_ssh_adapts_to_its_hosts_alone():
    with pytest.raises(ValueError, match="maximum is 3, but there are 2 hosts"):
        gt.cluster.Ssh(["a", "b"]).adapt(1, 3)


def test_supervised_programs_without_a_log(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisors, "_PAUSE", (0.01, 0.01))
    folder = tmp_path / "logs"
    program = WorkerProgram(["sh", "-c", "read key; exec cat > /dev/null"])
    workers = Supervisor(lambda _: program, key="k", logs=folder)
    workers.scale(1)
    until(workers.has_stopped)
    assert "worker 0 failed 3 times" in workers.failure and "logs" in workers.failure
    folder.mkdir()
    workers.scale(1)
    assert workers.failure is None and workers.running() == 1
    workers.end()
    workers.scale(2)
    assert workers.running() == 0


def test_a_server_and_workers_that_failed_are_both_notes(tmp_path):
    program = WorkerProgram(["sh", "-c", "echo no room; exit 3"])
    with gt.cluster.Local(workers=0, folder=tmp_path) as cluster:
        cluster._workers._program = lambda _: program
        cluster.scale(1)
        until(lambda: "worker 0 failed 3 times (exit status 3)" in cluster.notes())
        cluster._server.end()
        until(lambda: "its server has ended" in cluster.notes())
        assert "  no room" in cluster.status().notes


def test_the_output_of_a_program_whose_log_is_gone(tmp_path):
    child = ChildProcess(["sh", "-c", "cat"], key="k", log=tmp_path / "log")
    (tmp_path / "log").unlink()
    assert child.output() == ""
    child.end()
    child.wait(10)


@pytest.mark.parametrize("end", ["sys.exit()", "os.kill(os.getpid(), 9)"])
def test_a_temporary_folder_ends_with_the_program(end):
    code = f"""
import gt, os, sys
from gt.cluster.folder import ClusterFolder
folder = ClusterFolder(None)
print(folder.key.parent, flush=True)
{end}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    path = Path(done.stdout.strip())
    assert path.name.startswith("gt-cluster-")
    until(lambda: not path.exists())


def test_a_forked_child_does_not_keep_the_folder(tmp_path):
    folder, temporary = ClusterFolder(tmp_path), ClusterFolder(None)
    folder.claim()
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        folder.release()
        with open(tmp_path / "claim") as claim:
            until(lambda: is_free(claim))
        temporary.remove()
        assert not temporary.path.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def is_free(claim):
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_a_key_that_others_may_read_fails_at_once(tmp_path):
    ClusterFolder(tmp_path).key.chmod(0o644)
    with pytest.raises(gt.cluster.ClusterError, match="others may use it.*chmod 600"):
        gt.cluster.Local(workers=1, folder=tmp_path).start(timeout=600)


def test_the_last_error_is_part_of_the_timeout(tmp_path, monkeypatch):
    def refuses(address, key_file):
        raise ConnectionError("it speaks another language")

    monkeypatch.setattr("gt.cluster.reported.read_status", refuses)
    cluster = gt.cluster.Local(workers=1, folder=tmp_path)
    launch = cluster._launch
    monkeypatch.setattr(
        cluster, "_launch", lambda: (launch(), until(cluster.folder.address.exists))
    )
    with pytest.raises(gt.cluster.ClusterError, match="it speaks another language"):
        cluster.start(timeout=0.1)


def test_the_guard_of_slurm_is_dismissed_at_the_end_alone(tmp_path, monkeypatch):
    refusals = [SlurmRefusal("no answer")]

    def end_jobs(folder):
        if refusals:
            raise refusals.pop()

    monkeypatch.setattr("gt.cluster.slurm.cluster.end_jobs", end_jobs)
    cluster = gt.cluster.Slurm(folder=tmp_path)
    cluster._folder = cluster._open_folder()
    pipe = subprocess.PIPE
    cluster._guard = guard = subprocess.Popen(["cat"], stdin=pipe, stdout=pipe)
    with pytest.raises(gt.cluster.ClusterError, match="did not end the cluster.*\n  no answer"):
        cluster.close()
    assert cluster._guard is guard and guard.poll() is None
    cluster.close()
    assert cluster._guard is None and guard.poll() == 0


@pytest.mark.parametrize("name", ["a,b", "a\nb", "", "a/b", "-a", 3, "x" * 65])
def test_names_are_checked(name):
    with pytest.raises(ValueError, match="the name is"):
        gt.cluster.Slurm(name=name)


def test_what_slurm_says_of_limits_of_a_job():
    assert JobState(1, ("PENDING",), "QOSMaxNodePerJobLimit").is_hopeless
    assert not JobState(1, ("PENDING",), "QOSMaxJobsPerUserLimit").is_hopeless


def test_attaching_to_nothing_makes_nothing(tmp_path):
    for kind in (gt.cluster.Slurm, gt.cluster.Ray, gt.cluster.Kubernetes):
        with pytest.raises(gt.cluster.ClusterError):
            kind.attach(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_worker_starts_where_scripts_are_not_searched():
    start = Path(gt.__file__).parent / "worker" / "start.py"
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    environment["PYTHONPATH"] = str(Path(gt.__file__).parents[1])
    line = [sys.executable, str(start), "--help"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0 and "usage" in done.stdout, done.stderr
