"""Clusters on a Ray of three nodes that runs on this machine; GPUs are only counted there."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import gt
import pytest
import ray_nodes
from gt.cluster import ClusterError, Ray

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray")

eventually = ray_nodes.eventually

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def nodes():
    with ray_nodes.running_ray() as found:
        yield found


@pytest.fixture(scope="module")
def cluster(nodes):
    with Ray(workers=2, gpus_per_worker=0) as started:
        yield started


def serving(cluster) -> int:
    return len(cluster.status().workers)


def test_it_computes(cluster):
    with gt.Session(cluster.address):
        assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
    status = cluster.status()
    assert (status.kind, status.wanted, status.notes) == ("ray", 2, [])
    assert set(cluster.logs(1)) == {"server", "worker-0", "worker-1"}
    assert "serves" in cluster.logs()["worker-0"]


def test_the_client_of_ray(nodes):
    pytest.importorskip("grpc", reason="Ray's client is not installed: pip install ray[client]")
    code = f"""
import gt, gt.cluster
with gt.cluster.Ray(workers=1, gpus_per_worker=0, address="{nodes.client}") as cluster:
    gt.connect(cluster.address)
    print((gt.ones(3) + 1).tolist())
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        # Ray gives its own server for a client 30 s, which a busy machine may exceed.
        if "Starting Ray client server failed" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, 2.0, 2.0]\n"


def test_the_key_is_in_no_command_line_environment_or_log(cluster):
    key = cluster.folder.key.read_text().strip()
    for part in (key, key.split(".")[-1]):
        for process in sum(ray_nodes.processes(cluster).values(), []):
            for file in ("cmdline", "environ"):
                assert part.encode() not in Path(f"/proc/{process}/{file}").read_bytes()
        assert all(part not in log for log in cluster.logs().values())
        assert part not in str(ray.util.list_named_actors(all_namespaces=True))
    session = ray._private.worker._global_node.get_session_dir_path()
    found = subprocess.run(["grep", "-rl", key, session], capture_output=True, text=True)
    assert found.stdout == ""


def test_a_killed_worker_and_a_killed_actor_return(cluster):
    with gt.Session(cluster.address):
        value = gt.ones(3) + 1
        assert value.tolist() == [2, 2, 2]
        before = ray_nodes.processes(cluster)
        os.kill(before[0][1], signal.SIGKILL)
        # A child that does not notice the end of its standard input dies, too.
        os.kill(before[1][1], signal.SIGSTOP)
        os.kill(before[1][0], signal.SIGKILL)

        def has_returned():
            after = ray_nodes.processes(cluster)
            return all(after[of][0] != before[of][0] and len(after[of]) == 2 for of in (0, 1))

        eventually(has_returned)
        eventually(lambda: not ray_nodes.is_running(before[1][1]), 5)
        eventually(lambda: serving(cluster) == 2)
        assert (gt.ones(3) + 2).tolist() == [3, 3, 3]


def test_a_session_survives_the_server_and_its_actor(cluster):
    with gt.Session(cluster.address):
        value = gt.ones(3) + 1
        assert value.tolist() == [2, 2, 2]
        for part in (1, 0):
            before = cluster.status().address
            os.kill(ray_nodes.processes(cluster)["server"][part], signal.SIGKILL)
            eventually(lambda old=before: cluster.status().address not in (None, old))
            assert (value + 1).tolist() == [3, 3, 3]
    eventually(lambda: serving(cluster) == 2)


def test_scale_adds_workers_and_returns_what_they_had(cluster):
    groups = cluster._pool.groups
    cluster.scale(4)
    eventually(lambda: serving(cluster) == 4)
    assert len(groups._groups) == 3
    cluster.scale(1)
    eventually(lambda: serving(cluster) == 1 and len(groups._groups) == 1)
    cluster.scale(2)
    eventually(lambda: serving(cluster) == 2)
    assert len(groups._groups) == 1, "the bundle of the first group is used again"


def test_workers_come_and_go_with_the_work(nodes):
    with Ray(workers=0, gpus_per_worker=0) as cluster:
        cluster.adapt(0, 1, idle=1)
        with gt.Session(cluster.address):
            assert (gt.ones(3) + 1).tolist() == [2, 2, 2]
        eventually(lambda: cluster.size == serving(cluster) == 0)
        eventually(lambda: cluster._pool.groups._groups == [])


def test_a_signal_to_an_actor_drains_its_worker(cluster):
    before = ray_nodes.processes(cluster)
    os.kill(before[1][0], signal.SIGTERM)
    eventually(lambda: not any(map(ray_nodes.is_running, before[1])))
    assert serving(cluster) == 1
    eventually(lambda: cluster._pool._members.workers[1].has_left)
    cluster.scale(2)
    eventually(lambda: serving(cluster) == 2)


def test_what_ray_has_no_room_for_is_said(cluster):
    with pytest.raises(ClusterError) as caught:
        Ray(workers=5, gpus_per_worker=1, name="big").start(timeout=2)
    words = str(caught.value).splitlines()
    assert words[0].startswith("Ray has no room after 2 s for the cluster 'big-")
    assert "5 workers with CPU 1, GPU 1 each, PACK" in words[0]
    assert "Ray has CPU 12, GPU 4 on 3 nodes" in words[0]
    with pytest.raises(ClusterError, match="4 workers with CPU 1 each, STRICT_SPREAD"):
        Ray(workers=4, gpus_per_worker=0, strategy="STRICT_SPREAD").start(timeout=2)
    cluster.scale(20)
    eventually(lambda: any("no room yet for worker" in note for note in cluster.status().notes))
    cluster.scale(2)
    eventually(lambda: serving(cluster) == 2 and len(cluster._pool.groups._groups) == 1)


def test_two_clusters_and_all_is_gone_after_close(nodes, cluster):
    free = ray.available_resources()
    with Ray(workers=2, name="other") as other:
        # Ray has GPUs: each worker has one.
        assert "CPU 1, GPU 1" in other.script()
        for number in (0, 1):
            environment = Path(f"/proc/{ray_nodes.processes(other)[number][1]}/environ")
            (visible,) = (of for of in environment.read_text().split("\0") if "CUDA_VISIBLE" in of)
            assert visible.split("=")[1] in ("0", "1")
        assert serving(cluster) == serving(other) == 2
        started = sum(ray_nodes.processes(other).values(), [])
        folder, name = other.folder.path, other._plan.cluster
    assert not any(map(ray_nodes.is_running, started[1::2])), "the children have ended"
    eventually(lambda: not any(map(ray_nodes.is_running, started)), 5)
    assert not folder.exists() and not Path(f"{tempfile.gettempdir()}/gt-ray-{name}").exists()
    eventually(lambda: ray.available_resources() == free)
    assert serving(cluster) == 2
    assert ray.is_initialized(), "a Ray of the program stays"


def test_strict_spread_holds_for_added_workers(nodes):
    with Ray(workers=2, gpus_per_worker=0, strategy="STRICT_SPREAD") as spread:
        spread.scale(3)
        eventually(lambda: serving(spread) == 3)
        nodes_in_use = [node for group in spread._pool.groups._groups for node in group.nodes()]
        assert len(nodes_in_use) == len(set(nodes_in_use)) == 3


def test_a_worker_leaves_a_node_before_a_preemption(nodes):
    spare = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    spread = Ray(workers=4, gpus_per_worker=0, strategy="STRICT_SPREAD")
    try:
        with spread:
            ray_nodes.preempt(spare.node_id, seconds=20)
            eventually(lambda: serving(spread) == 3)
            nodes.remove_node(spare)
            spare = nodes.add_node(num_cpus=1)
            eventually(lambda: serving(spread) == 4)
    finally:
        nodes.remove_node(spare)


def test_a_session_survives_the_node_of_the_server(nodes, tmp_path):
    nodes.add_node(num_cpus=1, num_gpus=ray_nodes.GPUS)
    nodes.wait_for_nodes()
    with Ray(workers=2, gpus_per_worker=ray_nodes.GPUS, folder=tmp_path) as started:
        with gt.Session(started.address):
            value, before = gt.ones(3) + 1, started.status().address
            assert value.tolist() == [2, 2, 2]
            node = started._pool.groups.first.placed()[0]
            nodes.remove_node(next(of for of in nodes.worker_nodes if of.node_id == node))
            eventually(lambda: started.status().address not in (None, before))
            assert (value + 1).tolist() == [3, 3, 3]
        eventually(lambda: serving(started) == 2)


def test_a_worker_that_cannot_start_is_told_with_its_words(nodes):
    with pytest.raises(ClusterError) as caught:
        Ray(workers=1, gpus_per_worker=0, engine="nonsense:Engine").start()
    first, *words = str(caught.value).splitlines()
    assert "did not start: its worker-0 failed 3 times, exit status 1" in first
    assert any("nonsense" in line for line in words)
    with pytest.raises(ClusterError, match="its server failed in its start, exit status 2"):
        Ray(workers=1, gpus_per_worker=0, server_options=["--nonsense"]).start()


def test_nodes_without_gt_and_refused_environments(nodes):
    def words_of(**environment) -> str:
        with pytest.raises(ClusterError) as caught:
            Ray(workers=1, gpus_per_worker=0, runtime_env=environment).start()
        return str(caught.value)

    words = words_of(env_vars={"PYTHONPATH": ""})
    assert "has no GT" in words and "No module named 'gt'" in words
    words = words_of(conda="no-such-environment")
    assert words.startswith("Ray cannot run a task on its nodes\n") and "onda" in words
    words = words_of(working_dir="/no/such/folder")
    assert words.startswith("Ray refuses what the cluster '") and "/no/such/folder" in words


def test_a_memory_limit_is_asked_of_ray(nodes):
    with Ray(workers=1, gpus_per_worker=0, memory="64MB", threads=2) as cluster:
        assert "memory 64000000" in cluster.script()
        assert "2 threads, 0.1 GB" in cluster.logs()["worker-0"]


def test_an_owner_that_is_killed_leaves_nothing(nodes):
    options = {"workers": 2, "gpus_per_worker": 0, "address": nodes.address}
    owner, (name, folder, started) = ray_nodes.start_owner(options)
    running = sum(started.values(), [])
    assert len(running) == 6 and all(map(ray_nodes.is_running, running))
    owner.kill()
    owner.communicate()
    eventually(lambda: not any(map(ray_nodes.is_running, running)), 5)
    assert ray_nodes.programs_of(name) == []
    eventually(lambda: not os.path.exists(folder), 5)
    shutil.rmtree(f"{tempfile.gettempdir()}/gt-ray-{name}")


def test_a_kept_cluster_is_found_again(nodes, tmp_path):
    with pytest.raises(ClusterError, match="no cluster is kept on Ray in the folder"):
        Ray.attach(tmp_path)
    folder = tmp_path / "kept"
    options = {"workers": 1, "gpus_per_worker": 0, "address": nodes.address, "keep": True}
    options = {**options, "namespace": "tests", "folder": str(folder)}
    owner, (_, _, started) = ray_nodes.start_owner(options)
    owner.kill()
    owner.communicate()
    kept = Ray.attach(folder)
    assert serving(kept) == kept.size == 1
    assert "serves" in kept.logs()["worker-0"]
    assert "detached" in kept.script()
    kept.scale(2)
    eventually(lambda: serving(kept) == 2)
    kept.detach()
    with pytest.raises(ClusterError, match="a cluster is kept on Ray in the folder .* already"):
        Ray(workers=1, folder=folder).start()
    kept = Ray.attach(folder)
    with gt.Session(kept.address):
        value = gt.ones(3) + 1
        assert value.tolist() == [2, 2, 2]
    kept.close()
    eventually(lambda: not any(map(ray_nodes.is_running, sum(started.values(), []))), 5)
    with pytest.raises(ClusterError, match="no cluster is kept"):
        Ray.attach(folder)


def test_a_ray_that_is_started_here_ends_with_the_cluster(monkeypatch):
    ray_nodes.prepare_environment()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    code = f"""
import gt.cluster, ray
with gt.cluster.Ray(workers=1, address="local") as cluster:
    print(len(cluster.status().workers))
assert not ray.is_initialized()
try:
    gt.cluster.Ray(workers={10 * (os.cpu_count() or 1)}, address="local").start()
except gt.cluster.ClusterError as error:
    print(error)
assert not ray.is_initialized()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1\nRay has no room for the cluster"), done.stdout
