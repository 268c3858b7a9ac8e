"""What is said to SLURM, and how its answers are read. SLURM itself is not needed."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import gt.cluster
import pytest
from gt.cluster.slurm.commands import (
    JobState,
    Partition,
    SlurmRefusal,
    gpu_count,
    parse_sinfo,
    parse_squeue,
    requested_gpus,
    submit_environment,
)
from gt.cluster.slurm.node import allocated_options
from gt.cluster.slurm.record import LEASE_READINGS, ClusterRecord, Lease, LeaseWatch, read_record
from gt.cluster.slurm.refusals import explained
from gt.cluster.slurm.script import JobRequest
from gt.cluster.slurm.steps import killed_task

RECORDED = Path(__file__).resolve().parents[1] / "data" / "slurm"

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=mine
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --partition=gpu
#SBATCH --account=lab
#SBATCH --qos=long
#SBATCH --gpus-per-node=a100:8
#SBATCH --cpus-per-task=64
#SBATCH --time=8:00:00
#SBATCH --constraint=ib
#SBATCH --no-kill
#SBATCH --signal=B:TERM@60
#SBATCH --output=FOLDER/logs/slurm-0.log
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --exclusive
"""


def test_script_is_what_is_asked():
    cluster = gt.cluster.Slurm(
        nodes=4,
        partition="gpu",
        account="lab",
        qos="long",
        gpus_per_node="a100:8",
        cpus_per_task=64,
        time="8:00:00",
        constraint="ib",
        engine="pytorch",
        name="mine",
        server_options=["--data-root", "/my data"],
        sbatch_options=["--exclusive"],
        drain_seconds=60,
    )
    head, command = cluster.script().split("exec ")
    assert head == SCRIPT
    assert command.startswith(f"{sys.executable} -m gt.cluster.slurm.job FOLDER --number 0")
    assert "--expected 32 --lease" in command
    assert (
        "--node-option=--drain-timeout --node-option=55 --node-option=--backend=pytorch" in command
    )
    assert "--server-option=--data-root '--server-option=/my data'" in command
    bash = subprocess.run(["bash", "-n"], input=cluster.script(), text=True, capture_output=True)
    assert (bash.returncode, bash.stderr) == (0, "")


def test_jobs_that_are_run_again_have_state():
    script = gt.cluster.Slurm(restarts=3, keep=True).script()
    assert "#SBATCH --requeue\n" in script
    assert "--restarts 3" in script and "--lease" not in script
    assert "--server-option=--state --server-option=FOLDER/state/server" in script


@pytest.mark.parametrize("version", ["22.05", "23.02", "24.11"])
def test_squeue(version):
    running, pending = parse_squeue((RECORDED / f"squeue-{version}.json").read_text())
    assert running == JobState(1, ("RUNNING",), nodes="n[1-2]")
    assert running.is_running and not running.has_ended
    assert pending == JobState(2, ("PENDING",), reason="PartitionConfig")
    assert pending.is_hopeless and str(pending) == "job 2: PENDING (PartitionConfig)"


def test_states_of_newer_versions_are_lists():
    job = {"job_id": 7, "job_state": ["CANCELLED", "COMPLETING"], "state_reason": "None"}
    (state,) = parse_squeue(json.dumps({"jobs": [job], "errors": []}))
    assert state.has_ended and not state.is_over
    assert JobState(7, ("TIMEOUT",)).is_over
    assert not JobState(7, ("COMPLETING",)).is_over


def test_answers_that_are_errors():
    with pytest.raises(SlurmRefusal, match="Unable to contact"):
        parse_squeue(json.dumps({"jobs": [], "errors": [{"description": "Unable to contact"}]}))
    with pytest.raises(SlurmRefusal, match="SLURM 21.08 or later"):
        parse_squeue("squeue: unrecognized option '--json'")


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_sinfo(version):
    found = parse_sinfo((RECORDED / f"sinfo-{version}.json").read_text())
    assert found == [Partition("main", 4, 4), Partition("short", 3, 4), Partition("urgent", 3, 4)]


def test_gpus_of_nodes():
    counts = {
        "gpu:2": 2,
        "gpu:a100:4(S:0-1),shard:8": 4,
        "gpu:a100:4(S:0,1),gpu:v100:2(S:1)": 6,
        "gres:gpu:8": 8,
        "lustre:1": 0,
        "gpu": 1,
        "(null)": 0,
        "": 0,
    }
    assert {text: gpu_count(text) for text in counts} == counts


def test_requested_gpus():
    counts = {None: 0, 4: 4, "4": 4, "a100:2": 2, "a100:2,v100:1": 3, "a100": 1}
    assert {request: requested_gpus(request) for request in counts} == counts
    with pytest.raises(ValueError, match="gpus_per_node is 'a100:x', expected a number"):
        gt.cluster.Slurm(gpus_per_node="a100:x")


def test_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match="the number of nodes is 0, expected 1 or more"):
        gt.cluster.Slurm(nodes=0)
    with pytest.raises(ValueError, match="drain_seconds is 0"):
        gt.cluster.Slurm(drain_seconds=0)
    with pytest.raises(gt.cluster.ClusterError, match="is not started"):
        gt.cluster.Slurm().scale(2)


def test_without_slurm(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tmp_path / "cluster"
    with pytest.raises(gt.cluster.ClusterError, match="there is no command 'sbatch' here"):
        gt.cluster.Slurm(folder=folder).start()


def test_refusals_say_what_the_partitions_have():
    known = [Partition("main", 4, 2), Partition("cpu", 9, 0)]

    def why(nodes, **asked):
        cluster = gt.cluster.Slurm(nodes=nodes, **asked)
        assert isinstance(cluster._request, JobRequest)
        return explained(cluster._request, nodes, known)

    assert why(1, partition="nope") == "it has no partition 'nope', but main, cpu"
    assert why(5, partition="main").endswith("(main: 4 nodes with up to 2 GPUs)")
    assert why(1, partition="cpu", gpus_per_node=1).startswith("no node has as many GPUs (cpu: 9")
    assert why(9) is None


def test_tasks_that_were_killed():
    assert killed_task(b"srun: error: n2: task 1: Killed\n") == ("n2", 1)
    assert killed_task(b"srun: error: gpu-07.x: task 12: Out Of Memory\n") == ("gpu-07.x", 12)
    assert killed_task(b"srun: error: n1: task 0: Exited with exit code 1\n") is None
    assert killed_task(b"srun: error: Node failure on n2\n") is None


def test_workers_have_what_is_allocated():
    task = {"SLURM_PROCID": "3", "SLURMD_NODENAME": "n4", "SLURM_CPUS_ON_NODE": "8"}
    task["SLURM_MEM_PER_NODE"] = "1000"
    assert allocated_options([], task, devices=2) == ["--number", "3", "--name", "n4"]
    part = str(int(1000 * 2**20 * 0.9) // 2)
    added = allocated_options(["--workers", "2"], task, devices=0)
    assert added[4:] == ["--threads", "4", "--memory", part]
    assert allocated_options(["--threads=1", "--memory=1GB"], task, 0)[4:] == []
    assert allocated_options([], task, devices=2, job=5)[3] == "n4.5"
    assert "--number" not in allocated_options(["--number", "1"], task, 0)


def test_jobs_have_no_key_and_nothing_of_another_job(monkeypatch):
    monkeypatch.setenv("GT_KEY", "secret")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    environment = submit_environment()
    assert environment["SLURM_CONF"] == "/etc/slurm.conf"
    assert not {"GT_KEY", "SLURM_JOB_ID"} & set(environment)


def test_a_lease_is_over_when_it_is_not_renewed(tmp_path):
    lease, watch = Lease(tmp_path), LeaseWatch()
    for _ in range(3):
        lease.renew()
        readings = [watch.is_over(lease.read()) for _ in range(LEASE_READINGS)]
        assert not any(readings)
    assert watch.is_over(lease.read())
    assert stat.S_IMODE((tmp_path / "lease").stat().st_mode) == 0o600


def test_record(tmp_path):
    record = ClusterRecord("mine", {"time": "1:00"}, size=2)
    record.add(2).job = 17
    record.write(tmp_path)
    found = read_record(tmp_path)
    assert found == record and found.submitted() == [17] and found.find(0).has_server
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]
    with pytest.raises(gt.cluster.ClusterError, match="there is no SLURM cluster in"):
        gt.cluster.Slurm.attach(tmp_path / "other")
