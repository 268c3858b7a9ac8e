"""Clusters on a real SLURM, with four nodes on this machine."""

import os
import stat

import gt
import gt.cluster
import pytest
from processes import linux_only
from slurm import environment_of, processes_with
from slurm_running import SMALL, eventually, owner, running_slurm

pytestmark = linux_only


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with running_slurm(tmp_path_factory.mktemp("slurm")) as system:
        yield system


def total(address: str) -> float:
    """Return a sum that is computed by the cluster at an address."""
    with gt.Session(address):
        return (gt.arange(10, dtype=gt.float32) + 1).sum().item()


def test_starts_computes_and_leaves_nothing(slurm, tmp_path):
    cluster = gt.cluster.Slurm(nodes=2, gpus_per_node=2, folder=tmp_path, name="mine", **SMALL)
    with cluster:
        assert total(cluster.address) == 55
        status = cluster.status()
        names = sorted(worker["name"] for worker in status.workers)
        assert names == ["n1-0", "n1-1", "n2-0", "n2-1"]
        (note,) = status.notes
        assert "RUNNING on n[1-2], 2 nodes and the server" in note
        assert status.wanted == 2 and status.unit == "node"
        (job,) = slurm.active_jobs()
        assert f"JobId={job}" in slurm.run("scontrol", "show", "job", job)
        assert {"server", "slurm-0", "n1-0", "n2-1"} <= set(cluster.logs())
        # One worker for each GPU of the allocation.
        gpus = [
            environment_of(pid)["CUDA_VISIBLE_DEVICES"]
            for pid, command in processes_with(f"file://{tmp_path}/address").items()
            if "worker/start.py" in command
        ]
        assert sorted(gpus) == ["0", "0", "1", "1"]
    assert slurm.active_jobs() == []
    assert processes_with(str(tmp_path)) == {}
    assert not cluster.is_running


def test_submits_the_script_that_it_shows(slurm, tmp_path):
    with gt.cluster.Slurm(folder=tmp_path, **SMALL) as cluster:
        (job,) = slurm.active_jobs()
        submitted = slurm.run("scontrol", "write", "batch_script", job, "-")
        assert submitted.strip() == cluster.script().strip()


def test_names_with_spaces(slurm, tmp_path):
    with gt.cluster.Slurm(name="it's mine", folder=tmp_path / "a folder", **SMALL) as cluster:
        assert slurm.run("squeue", "--noheader", "--format=%j").strip() == "it's mine"
        assert "gt node: 1 workers on n1" in cluster.logs()["slurm-0"]
        assert cluster.status().notes != []


def test_the_key_is_in_files_alone(slurm, tmp_path):
    with gt.cluster.Slurm(folder=tmp_path / "mine", **SMALL) as cluster:
        key = (tmp_path / "mine" / "key").read_text().strip()
        assert stat.S_IMODE((tmp_path / "mine" / "key").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o700
        (job,) = slurm.active_jobs()
        seen = cluster.script() + slurm.run("scontrol", "show", "job", job)
        seen += "".join(cluster.logs().values()) + (tmp_path / "mine" / "cluster.json").read_text()
        for pid, command in processes_with(str(tmp_path / "mine")).items():
            if pid != os.getpid():
                seen += command + "".join(environment_of(pid).values())
        assert key not in seen


def test_temporary_folder_is_removed(slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with gt.cluster.Slurm(**SMALL) as cluster:
        assert cluster.folder.path.parent == tmp_path / ".gt" / "clusters"
        assert total(cluster.address) == 55
    assert list((tmp_path / ".gt" / "clusters").iterdir()) == []


def test_scales_up_and_down(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=2, folder=tmp_path, **SMALL) as cluster:
        with gt.Session(cluster.address):
            kept = gt.rand(1000)
            bits = kept.tolist()

            def scaled(nodes: int, jobs: int) -> None:
                cluster.scale(nodes)
                eventually(f"{nodes} nodes", lambda: len(cluster.status().workers) == nodes)
                eventually(f"{jobs} jobs", lambda: len(slurm.active_jobs()) == jobs)
                assert cluster.size == nodes
                assert kept.tolist() == bits

            scaled(4, jobs=3)
            scaled(3, jobs=2)
            # A node of the first job stays allocated, without workers.
            scaled(1, jobs=1)
            scaled(2, jobs=1)
            # A job that waits for nodes is cancelled.
            cluster.scale(6)
            assert len(slurm.active_jobs()) == 5
            scaled(2, jobs=1)
        logs = cluster.logs()
        # Those of the second job, which may be on a node of the first one.
        (log,) = (text for name, text in logs.items() if name.endswith(".2-0"))
        assert "drained" in log
    assert slurm.active_jobs() == []


def test_two_clusters_at_once(slurm, tmp_path):
    clusters = [gt.cluster.Slurm(name="same", folder=tmp_path / str(n), **SMALL) for n in range(2)]
    with clusters[0], clusters[1]:
        assert clusters[0]._published() != clusters[1]._published()
        assert [total(of.address) for of in clusters] == [55, 55]
        clusters[0].close()
        assert total(clusters[1].address) == 55
        assert len(slurm.active_jobs()) == 1
    assert slurm.active_jobs() == []


def test_workers_of_one_node(slurm, tmp_path):
    asked = {"workers_per_node": 2, "sbatch_options": ["--mem=1000", "--exclusive"]}
    with gt.cluster.Slurm(folder=tmp_path, engine="native", **asked) as cluster:
        assert len(cluster.status().workers) == 2
        # Two cores and 900 MB for tensors, divided.
        assert "1 thread, 0.5 GB for tensors" in cluster.logs()["n1-1"]


def test_kept_cluster_is_attached_to(slurm, tmp_path):
    with owner(tmp_path, keep=True) as process:
        process.kill()
        process.wait()
    assert total(f"file://{tmp_path}/address") == 55
    cluster = gt.cluster.Slurm.attach(tmp_path)
    assert cluster.is_running and cluster.size == 1
    cluster.scale(2)
    eventually("2 nodes", lambda: len(cluster.status().workers) == 2)
    assert gt.cluster.Slurm.attach(tmp_path).size == 2
    with pytest.raises(gt.cluster.ClusterError, match="has a cluster: end it with"):
        gt.cluster.Slurm(folder=tmp_path, **SMALL).start()
    assert len(slurm.active_jobs()) == 2
    cluster.close()
    assert slurm.active_jobs() == []
    eventually("all to end", lambda: processes_with(str(tmp_path)) == {})


@pytest.mark.parametrize(
    ("asked", "line", "below"),
    [
        ({"partition": "nope"}, "1 node, partition 'nope': it has no partition 'nope', but low, "
         "main, short, urgent", "Invalid partition name specified"),
        ({"gpus_per_node": 8}, "1 node with 8 GPUs each: no node has as many GPUs (low: 4 nodes "
         "with up to 2 GPUs", "Requested node configuration is not available"),
        ({"nodes": 9}, "9 nodes: there are not as many nodes (low: 4 nodes", "PartitionConfig"),
        ({"constraint": "ib"}, "1 node, constraint 'ib': Batch job submission failed: Invalid "
         "feature specification", "Invalid feature specification"),
        ({"partition": "short", "time": 10}, "1 node, partition 'short', time '10'",
         "PartitionConfig"),
        ({"time": "soon"}, "Invalid --time specification", "Invalid --time specification"),
        ({"sbatch_options": ["--nonsense"]}, "unrecognized option '--nonsense'", "--help"),
    ],
)  # fmt: skip
def test_what_slurm_refuses(slurm, tmp_path, asked, line, below):
    with pytest.raises(gt.cluster.ClusterError) as caught:
        gt.cluster.Slurm(folder=tmp_path, **{**SMALL, **asked}).start(20)
    first, *words = str(caught.value).splitlines()
    assert line in first, caught.value
    assert below in "\n".join(words)
    assert slurm.active_jobs() == []
    assert processes_with(str(tmp_path)) == {}


@pytest.mark.parametrize("option", ["server_options", "worker_options"])
def test_programs_that_do_not_start(slurm, tmp_path, option):
    with pytest.raises(gt.cluster.ClusterError) as caught:
        gt.cluster.Slurm(folder=tmp_path, engine="native", **{option: ["--nonsense"]}).start(60)
    assert "FAILED on n1" in str(caught.value).splitlines()[0]
    assert "unrecognized arguments: --nonsense" in str(caught.value)
    assert slurm.active_jobs() == []


def test_start_that_takes_too_long(slurm, tmp_path):
    with gt.cluster.Slurm(nodes=4, folder=tmp_path / "first", **SMALL):
        with pytest.raises(gt.cluster.ClusterError) as caught:
            asked = {"sbatch_options": ["--exclusive"], **SMALL}
            gt.cluster.Slurm(folder=tmp_path / "second", **asked).start(3)
        assert "is not complete after 3 s: 0 of 1 workers serve" in str(caught.value)
        assert "PENDING" in str(caught.value)
        assert len(slurm.active_jobs()) == 1
