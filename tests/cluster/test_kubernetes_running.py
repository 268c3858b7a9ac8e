"""Clusters in a stand-in for Kubernetes, whose pods are processes with the commands of the pods."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import gt
import pytest
from cluster_command import command
from gt.cluster import ClusterError, Kubernetes
from gt.cluster.command import main
from kubernetes_cluster import StandIn, is_alive, wait_until

pytest.importorskip("kubernetes", reason="needs pip install 'kubernetes>=37'")


@pytest.fixture
def here(tmp_path):
    stand_in = StandIn(tmp_path, gpus=2)
    yield stand_in
    stand_in.close()


def compute(cluster) -> list[float]:
    with gt.Session(cluster.address):
        return (gt.ones(3) + 1).tolist()


def serving(cluster) -> int:
    return len(cluster.report().get("workers", []))


def test_it_starts_computes_scales_and_closes(here):
    with Kubernetes(2, image="gt:1") as cluster:
        assert compute(cluster) == [2, 2, 2]
        assert serving(cluster) == 2
        assert "2 workers serve, of 2 pods" in str(cluster.status())
        logs = cluster.logs(1)
        assert len(logs) == 3 and all(text.count("\n") == 1 for text in logs.values())
        cluster.scale(3)
        wait_until(lambda: serving(cluster) == 3, "a third worker")
        cluster.scale(1)
        wait_until(lambda: serving(cluster) == 1, "the end of two workers")
        # They ended in good order: nothing is computed again.
        assert compute(cluster) == [2, 2, 2]
        processes = here.node.running()
        assert len(processes) >= 2
    assert here.has_nothing()
    assert not any(is_alive(pid) for pid in processes)
    assert not cluster.is_running


def test_what_is_created_is_what_the_manifest_shows(here):
    yaml = pytest.importorskip("yaml")
    with Kubernetes(1, image="gt:1") as cluster:
        made = [body for method, _, body in here.api.requests if method == "POST"]
        assert made[0]["kind"] == "Job"
        for of in made[1:]:
            (owner,) = of["metadata"].pop("ownerReferences")
            assert owner["name"] == f"{cluster.name}-server" and "controller" not in owner
        assert made == list(yaml.safe_load_all(cluster.manifest(include_key=True)))
        key = cluster.folder.key.read_text().strip()
        assert key not in cluster.script() and key in cluster.manifest(include_key=True)


def test_the_key_is_in_no_command_line_and_no_environment(here):
    with Kubernetes(1, image="gt:1") as cluster:
        secret = next(iter(here.api.all("secrets")))["data"]
        assert secret["cluster.key"] == cluster.folder.key.read_text().strip()
        assert secret["worker.key"] != secret["cluster.key"]
        for pid in here.node.running():
            for file in ("cmdline", "environ"):
                text = Path(f"/proc/{pid}/{file}").read_bytes().decode(errors="replace")
                assert not any(key in text for key in secret.values())
        assert not any(key in text for key in secret.values() for text in cluster.logs().values())


def test_a_pod_with_several_gpus_has_several_workers_whose_output_is_its_log(here):
    with Kubernetes(1, image="gt:1", gpus_per_pod=2, cpu=2, engine="native") as cluster:
        assert serving(cluster) == 2
        (pod,) = [name for name in cluster.logs() if "workers" in name]
        wait_until(lambda: cluster.logs()[pod].count("serves") == 2, "the output of two workers")


def test_a_job_set_of_either_version_scales(here):
    with Kubernetes(1, image="gt:1", job_set=True) as cluster:
        assert compute(cluster) == [2, 2, 2]
        cluster.scale(2)
        wait_until(lambda: serving(cluster) == 2, "a second worker")
        (budget,) = [
            of["spec"]["minAvailable"]
            for of in here.api.all("poddisruptionbudgets")
            if "workers" in of["metadata"]["name"]
        ]
        assert budget == 1
        with pytest.raises(ValueError, match="a JobSet has at least 1"):
            cluster.scale(0)
        here.api.faults["PATCH", "jobsets"] = (403, "denied: spec.replicatedJobs is immutable")
        cluster.scale(1)
        (job,) = [of for of in here.api.all("jobs") if "workers" in of["metadata"]["name"]]
        patched = [body for method, plural, body in here.api.requests if plural == "jobs"]
        assert {"spec": {"parallelism": 1}} in patched and job is not None
    assert here.has_nothing()


def test_a_worker_and_a_server_that_are_killed_are_started_again(here):
    with Kubernetes(1, image="gt:1") as cluster:
        worker, server = (
            next(name for name in cluster.logs() if part in name) for part in ("workers", "server")
        )
        before = here.node.process_of(worker).pid
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: here.node.process_of(worker).pid != before, "another worker")
        wait_until(lambda: serving(cluster) == 1, "that it serves")
        assert compute(cluster) == [2, 2, 2]
        before = here.node.process_of(server).pid
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: here.node.process_of(server).pid != before, "another server")
        wait_until(lambda: serving(cluster) == 1, "that its worker serves")
        assert compute(cluster) == [2, 2, 2]


OWNER = """
import sys, time
from gt.cluster import Kubernetes
cluster = Kubernetes(1, image="gt:1", lease=4).start()
print("started", flush=True)
time.sleep(600)
"""


def test_a_dead_owner_leaves_nothing(here):
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == "started\n"
        # While it lives, the deadline moves on.
        (job,) = here.api.all("jobs")
        first = job["spec"]["activeDeadlineSeconds"]
        wait_until(lambda: job["spec"]["activeDeadlineSeconds"] > first + 4, "a later deadline")
        assert not here.has_nothing()
        owner.kill()
    wait_until(here.has_nothing, "the end of all after the deadline")


def test_a_program_that_ends_without_close_removes_it(here):
    program = OWNER.replace("time.sleep(600)", "")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert here.has_nothing()


def test_another_program_attaches_to_one_that_is_kept(here, tmp_path):
    folder = tmp_path / "kept"
    program = (
        "from gt.cluster import Kubernetes\n"
        f"Kubernetes(1, image='gt:1', folder={str(folder)!r}, keep=True, name='kept').start()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert len(here.node.running()) == 2
    assert not (folder / "address").exists()
    cluster = Kubernetes.attach(folder)
    assert cluster.name == "kept" and cluster.size == 1
    assert compute(cluster) == [2, 2, 2]
    cluster.scale(2)
    wait_until(lambda: serving(cluster) == 2, "a second worker")
    cluster.detach()
    assert not here.has_nothing()
    again = Kubernetes.attach(folder)
    assert again.size == 2
    again.close()
    assert here.has_nothing()
    with pytest.raises(ClusterError, match="has no cluster in Kubernetes"):
        Kubernetes.attach(folder)


def test_commands_leave_no_copy_of_the_key(here, clusters, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    status, text = command("up", "kubernetes", "--image=gt:1", "--name=kept")
    assert status == 0, text
    for words in (["status"], ["logs"], ["scale", "kept", "2"], ["status"]):
        assert main(words) == 0
        assert list(tmp_path.glob("gt-cluster-*")) == []
    assert main(["down"]) == 0
    assert here.has_nothing() and list(clusters.iterdir()) == []


def test_sessions_go_on_with_a_state(here):
    with Kubernetes(1, image="gt:1", storage="claim") as cluster:
        server = next(name for name in cluster.logs() if "server" in name)
        with gt.Session(cluster.address):
            x = gt.ones(3) + 1
            assert x.tolist() == [2, 2, 2]
            # As when its node is drained: it ends in good order, and another pod follows.
            here.api.remove("pods", server)
            wait_until(
                lambda: any("server" in name and name != server for name in cluster.logs()),
                "another server",
            )
            assert (x + 1).tolist() == [3, 3, 3]


def test_several_clusters_do_not_collide(here):
    with Kubernetes(1, image="gt:1") as one, Kubernetes(1, image="gt:1") as two:
        assert compute(one) == compute(two) == [2, 2, 2]
        assert one.name != two.name and one.address != two.address
        one.close()
        assert compute(two) == [2, 2, 2]
    assert here.has_nothing()
