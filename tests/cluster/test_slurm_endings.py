"""Clusters on a real SLURM of which something ends: program, job, allocation, node program."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import gt
import gt.cluster
import pytest
from processes import linux_only
from slurm import environment_of, processes_with
from slurm_running import OWNER, SMALL, eventually, owner, running_slurm

pytestmark = linux_only


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with running_slurm(tmp_path_factory.mktemp("slurm")) as system:
        yield system


def programs(folder: Path, module: str) -> list[int]:
    """Return the processes of a cluster that run a module or a file, without SLURM's own."""
    found = {pid: of.split() for pid, of in processes_with(str(folder)).items()}
    return sorted(
        pid
        for pid, words in found.items()
        if words[1:3] == ["-m", module] or words[1:2] and words[1].endswith(module)
    )


def is_gone(slurm, folder: Path) -> bool:
    """Return whether neither SLURM nor the system have anything of a cluster left."""
    return not slurm.active_jobs() and not processes_with(str(folder))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_program_ends(slurm, tmp_path, number):
    with owner(tmp_path, nodes=2) as process:
        process.send_signal(number)
        process.wait(20)
        # It takes about a second; the bound of 5 s is documented.
        assert eventually("the cluster to end", lambda: is_gone(slurm, tmp_path)) < 20


def test_the_program_and_its_guard_end(slurm, tmp_path):
    with owner(tmp_path, nodes=2) as process:
        (guard,) = programs(tmp_path, "gt.cluster.slurm.guard")
        os.kill(guard, signal.SIGKILL)
        process.kill()
        process.wait()
        eventually("the lease to be over", lambda: is_gone(slurm, tmp_path))
    assert (
        "the program that began this cluster is gone"
        in (tmp_path / "logs" / "slurm-0.log").read_text()
    )


def test_a_program_that_waits_for_nodes_ends(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=4, folder=tmp_path / "first", **SMALL):
        process = waiting_owner(tmp_path / "second")
        eventually("its job to wait", lambda: len(slurm.active_jobs()) == 2)
        process.kill()
        process.wait()
        eventually("its job to be cancelled", lambda: len(slurm.active_jobs()) == 1)
    eventually("all to end", lambda: is_gone(slurm, tmp_path))


def waiting_owner(folder: Path) -> subprocess.Popen:
    """Return the process of a program whose job waits for nodes."""
    given = json.dumps({**SMALL, "folder": str(folder), "sbatch_options": ["--exclusive"]})
    return subprocess.Popen([sys.executable, "-c", OWNER, given], env=os.environ)


def test_an_operator_cancels_the_job(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=2, folder=tmp_path, **SMALL) as cluster:
        cluster.scale(3)
        eventually("3 nodes", lambda: len(cluster.status().workers) == 3)
        first = slurm.run("squeue", "--noheader", "--sort=i", "--format=%A").split()[0]
        slurm.run("scancel", first)
        # The others have no server any more.
        eventually("all jobs to end", lambda: not slurm.active_jobs())
        status = cluster.status()
        assert status.workers == [] and status.address is None
        assert any(f"job {first}: CANCELLED" in note for note in status.notes), status.notes
    eventually("all to end", lambda: is_gone(slurm, tmp_path))


def test_a_node_program_is_killed(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=2, folder=tmp_path, **SMALL) as cluster:
        with gt.Session(cluster.address):
            kept = gt.rand(1000)
            bits = kept.tolist()
            for _ in range(2):
                killed = next(
                    pid
                    for pid in programs(tmp_path, "gt.cluster.slurm.node")
                    if environment_of(pid).get("SLURMD_NODENAME") == "n2"
                )
                os.kill(killed, signal.SIGKILL)
                eventually("another", partial(started_again, tmp_path, killed))
                eventually("2 workers", lambda: len(cluster.status().workers) == 2)
                assert kept.tolist() == bits
        assert "the workers of n2 are started again" in cluster.logs()["slurm-0"]
        assert any("n2: task" in note for note in cluster.status().notes)
        # It takes part in scaling, as the one before.
        cluster.scale(1)
        eventually("1 worker", lambda: len(cluster.status().workers) == 1)
        cluster.scale(2)
        eventually("2 workers", lambda: len(cluster.status().workers) == 2)
    assert is_gone(slurm, tmp_path)


def started_again(folder: Path, killed: int) -> bool:
    """Return whether a node program runs on n2 that is not the killed one."""
    return any(
        pid != killed and environment_of(pid).get("SLURMD_NODENAME") == "n2"
        for pid in programs(folder, "worker/start.py")
    )


def test_the_server_is_killed(slurm, tmp_path):
    with gt.cluster.Slurm(folder=tmp_path, restarts=1, **SMALL) as cluster:
        with gt.Session(cluster.address):
            kept = gt.rand(1000)
            bits = kept.tolist()
            before = cluster._published()
            (server,) = programs(tmp_path, "gt.server")
            os.kill(server, signal.SIGKILL)
            eventually("another address", lambda: cluster._published() != before)
            assert kept.tolist() == bits
    assert is_gone(slurm, tmp_path)


def test_the_job_program_is_killed(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=2, folder=tmp_path, **SMALL) as cluster:
        (program,) = programs(tmp_path, "gt.cluster.slurm.job")
        os.kill(program, signal.SIGKILL)
        eventually("the job to end", lambda: not slurm.active_jobs())
        eventually("workers to end", lambda: not programs(tmp_path, "worker/start.py"))
        assert any("FAILED" in note for note in cluster.status().notes)


def signal_of_the_wall_time(slurm) -> str:
    """Send what `--signal=B:TERM@30` sends 30 s before the wall time; return the job."""
    (job,) = slurm.active_jobs()
    slurm.run("scancel", "--batch", "--signal=TERM", job)
    return job


def test_workers_are_drained_before_the_wall_time(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=2, folder=tmp_path, **SMALL) as cluster:
        cluster.scale(3)
        eventually("3 nodes", lambda: len(cluster.status().workers) == 3)
        with gt.Session(cluster.address):
            kept = gt.rand(1000)
            bits = kept.tolist()
            last = slurm.run("squeue", "--noheader", "--sort=-i", "--format=%A").split()[0]
            slurm.run("scancel", "--batch", "--signal=TERM", last)
            eventually("2 workers", lambda: len(cluster.status().workers) == 2)
            assert kept.tolist() == bits
        (log,) = (text for name, text in cluster.logs().items() if name.endswith(".1-0"))
        assert "drained" in log
        eventually("its end", lambda: len(slurm.active_jobs()) == 1)
        signal_of_the_wall_time(slurm)
        eventually("the end of the first", lambda: not slurm.active_jobs())
    assert is_gone(slurm, tmp_path)


def test_sessions_go_on_in_the_next_allocation(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=2, folder=tmp_path, restarts=1, **SMALL) as cluster:
        with gt.Session(cluster.address):
            kept = gt.rand(1000)
            bits = kept.tolist()
            job = signal_of_the_wall_time(slurm)
            begin_again(slurm, job)
            assert kept.tolist() == bits
            assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
            eventually("2 workers", lambda: len(cluster.status().workers) == 2)
            # It is run again once.
            signal_of_the_wall_time(slurm)
            eventually("the end", lambda: not slurm.active_jobs())
    assert is_gone(slurm, tmp_path)


def begin_again(slurm, job: str) -> None:
    """Have SLURM begin a job soon that it has put back, after which it waits two minutes.

    It needs some seconds: a node refuses a job that begins in the second in which it has ended.
    """
    pending = ["squeue", "--noheader", "--states=PENDING", "--format=%A"]
    eventually("the job to wait", lambda: job in slurm.run(*pending))
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now+3seconds")


@pytest.mark.parametrize("partition", ["main", "low"])
def test_a_preempted_job_goes_on(slurm, tmp_path, partition):
    # The second one gives jobs some seconds: SIGTERM is for the tasks of their steps alone then.
    asked = {"nodes": 4, "partition": partition, "restarts": 1, **SMALL}
    with gt.cluster.Slurm(folder=tmp_path, **asked) as cluster:
        with gt.Session(cluster.address):
            kept = gt.rand(1000)
            bits = kept.tolist()
            (job,) = slurm.active_jobs()
            asked = ["--partition=urgent", "--nodes=4", "--exclusive", "--wrap=sleep 2"]
            slurm.run("sbatch", *asked, "--output=/dev/null")
            begin_again(slurm, job)
            eventually("4 workers", lambda: len(cluster.status().workers) == 4)
            assert kept.tolist() == bits
            drained = [name for name, log in cluster.logs().items() if "drained" in log]
            # In the other one, some may be as fast as SLURM.
            assert partition == "main" or len(drained) == 4, cluster.logs()
    eventually("all to end", lambda: is_gone(slurm, tmp_path))


@pytest.mark.timeout(240)
def test_a_real_wall_time(slurm, tmp_path):
    # The least that SLURM knows, a minute; it may send its signal up to a minute early.
    asked = {"time": 1, "drain_seconds": 2}
    with gt.cluster.Slurm(folder=tmp_path, **asked, **SMALL) as cluster:
        start = time.monotonic()
        eventually("the end of the job", lambda: not slurm.active_jobs(), limit=120)
        assert time.monotonic() - start < 120
        assert "the workers hand over what they have" in cluster.logs()["slurm-0"]
        assert any("COMPLETED" in note for note in cluster.status().notes)
    assert is_gone(slurm, tmp_path)
