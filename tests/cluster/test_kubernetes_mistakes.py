"""Clusters in Kubernetes that cannot start: what the error says, and that nothing is left."""

import json
import socket
import sys
import time

import pytest
from gt.cluster import ClusterError, Kubernetes
from gt.cluster.kubernetes.forward import Forward
from kubernetes_cluster import StandIn, wait_until

pytest.importorskip("kubernetes", reason="needs pip install 'kubernetes>=37'")


@pytest.fixture
def here(tmp_path):
    stand_in = StandIn(tmp_path)
    yield stand_in
    stand_in.close()


def refused(timeout: float = 60, **more) -> list[str]:
    """Start a cluster, which fails; return the lines of the error."""
    cluster = Kubernetes(1, **{"image": "gt:1", **more})
    with pytest.raises(ClusterError) as error:
        cluster.start(timeout)
    assert not cluster.is_running
    return str(error.value).splitlines()


def test_an_image_that_cannot_be_pulled(here):
    first, *words = refused(image="nowhere/missing:1")
    assert "did not start: pod 'gt-" in first
    assert "ImagePullBackOff (image nowhere/missing:1)" in first
    assert 'Back-off pulling image "nowhere/missing:1"' in words[0]
    wait_until(here.has_nothing, "that nothing is left", 10)


def test_a_quota_that_is_exceeded_by_the_server(here):
    here.node.quota = 0
    first, *words = refused()
    assert "no pod can be created" in first
    assert "exceeded quota: team" in words[0]
    assert here.has_nothing()


def test_a_quota_that_is_exceeded_by_workers(here):
    here.node.quota = 1
    first, *words = refused()
    assert first.endswith("-workers': no pod can be created") and "Deployment" in first
    assert "exceeded quota: team" in words[0]
    assert here.has_nothing()


def test_a_request_that_is_forbidden(here):
    words = "jobs.batch is forbidden: User 'ada' cannot create resource 'jobs'"
    here.api.faults["POST", "jobs"] = (403, words)
    first, second = refused()
    assert "Kubernetes does not create Job 'gt-" in first and "403" in first
    assert "in the namespace 'default'" in first
    assert second.strip() == words
    assert here.has_nothing()


def test_what_was_created_before_a_refusal_is_removed(here):
    here.api.faults["POST", "deployments"] = (403, "quota of deployments exceeded")
    first, second = refused()
    assert "does not create Deployment" in first and "quota of deployments" in second
    assert any(method == "POST" for method, _, _ in here.api.requests)
    assert here.has_nothing()


def test_a_namespace_that_does_not_exist(here):
    first, second = refused(namespace="nowhere")
    assert "in the namespace 'nowhere': 404" in first
    assert second.strip() == 'namespaces "nowhere" not found'


def test_a_name_that_is_taken_leaves_the_other_cluster_alone(here):
    with Kubernetes(1, image="gt:1", name="taken") as cluster:
        before = here.api.count()
        first, second = refused(name="taken")
        assert "does not create Job 'taken-server'" in first and "409" in first
        assert "already exists" in second
        assert here.api.count() == before
        assert len(cluster.report()["workers"]) == 1


def test_no_node_has_the_gpus(here):
    first, *words = refused(timeout=3, gpus_per_pod=4)
    assert "is not complete after 3 s: 0 of 4 workers serve" in first
    assert any("Unschedulable: 0/1 nodes are available: 1 Insufficient" in of for of in words)
    assert here.has_nothing()


def test_a_worker_that_fails_says_why(here):
    first, *words = refused(worker_options=["--no-such-option"])
    assert "CrashLoopBackOff" in first and "workers" in first
    assert any("unrecognized arguments: --no-such-option" in of for of in words)
    wait_until(here.has_nothing, "that nothing is left", 10)


def test_a_server_that_fails_says_why(here):
    first, *words = refused(server_options=["--policy=/no/such/file"])
    assert "CrashLoopBackOff" in first and "server" in first
    assert any("/no/such/file" in of for of in words)


def test_no_definition_of_job_sets(here):
    here.api.plurals.discard("jobsets")
    first, second = refused(job_set=True)
    assert "does not create JobSet" in first and "404" in first and "not found" in second
    assert here.has_nothing()


def test_a_queue_that_admits_nothing_says_so(here):
    here.api.plurals.add("workloads")
    add = here.api.add

    def admit(plural, thing, namespace="default"):
        # As Kueue does.
        made = add(plural, thing, namespace)
        if plural == "jobs":
            made["spec"]["suspend"] = True
            owner = {"kind": "Job", "name": made["metadata"]["name"], "uid": "x"}
            words = "couldn't assign flavors to pod set main: insufficient quota for cpu"
            condition = {"type": "QuotaReserved", "status": "False", "message": words}
            add(
                "workloads",
                {
                    "metadata": {"name": "workload", "ownerReferences": [owner]},
                    "status": {"conditions": [condition]},
                },
            )
        return made

    here.api.add = admit
    first, *words = refused(timeout=2, queue="research")
    assert "it waited in vain until its server is admitted" in first
    assert any("waits in the queue 'research': couldn't assign flavors" in of for of in words)
    # Workers are not submitted before the server is admitted.
    assert not any(
        plural == "deployments" and method == "POST" for method, plural, _ in here.api.requests
    )


def test_a_service_that_cannot_be_reached_names_the_label_of_clients(here):
    first, *words = refused(timeout=3, connect="service", name="far")
    assert "is not complete after 3 s" in first
    assert "the server does not answer at far.default.svc:9000" in words[0]
    assert "the label gt-client=far" in words[0]
    assert here.has_nothing()


def test_what_cannot_be_removed_is_named(here, monkeypatch):
    from gt.cluster.kubernetes import removal

    monkeypatch.setattr(removal, "_LIMIT", 1.0)
    cluster = Kubernetes(1, image="gt:1", name="stuck").start()
    here.api.faults["DELETE", "jobs"] = (403, "jobs.batch is forbidden")
    with pytest.raises(ClusterError, match="'stuck' is not removed after 1 s(.|\n)*Job stuck-"):
        cluster.close()
    # It can be tried again; without that, its deadline removes the rest.
    assert cluster.is_running
    here.api.faults.clear()
    cluster.close()
    assert not cluster.is_running
    wait_until(here.has_nothing, "that nothing is left")


def test_a_context_that_does_not_exist(here):
    with pytest.raises(ClusterError, match="no configuration for Kubernetes(.|\n)*elsewhere"):
        Kubernetes(1, image="gt:1", context="elsewhere", namespace="default").start()


def test_no_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(ClusterError, match="kubectl config get-contexts"):
        Kubernetes(1, image="gt:1")


def test_an_api_server_that_does_not_answer(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    config = {
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "test", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    first, *words = refused()
    assert f"the Kubernetes API server at http://127.0.0.1:{port} cannot be reached" in first
    assert "Connection refused" in "".join(words)


def test_without_the_client(monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(ClusterError, match="pip install 'kubernetes>=37'"):
        Kubernetes(1, image="gt:1")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"connect": "magic"}, "connect is 'magic', expected service, forward or None"),
        ({"keep": True}, "keep=True needs a folder"),
        ({"pods": 0, "job_set": True}, "a JobSet has at least 1"),
        ({"pods": -1}, "the number of pods is -1"),
        ({"name": "My_Cluster"}, "the name is 'My_Cluster'"),
    ],
)
def test_bad_values(more, words):
    with pytest.raises(ValueError, match=words):
        Kubernetes(**{"image": "gt:1", "namespace": "default", **more})


def test_a_forward_without_a_pod_closes_the_connection():
    def connect():
        raise ClusterError("the server has no pod that is ready")

    forward = Forward(connect, 9000)
    host, port = forward.address.split(":")
    with socket.create_connection((host, int(port)), 10) as client:
        assert client.recv(1) == b""
    assert forward.failure == "the server has no pod that is ready"
    started = time.monotonic()
    forward.close()
    assert time.monotonic() - started < 30
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), 10)
