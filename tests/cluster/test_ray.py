"""What clusters on Ray ask for, and how bad input is reported: without Ray."""

import asyncio
import os
import sys
import threading
import time
import types

import pytest
from gt import __version__
from gt.cluster import ClusterError, Ray
from gt.cluster.ray import connection
from gt.cluster.ray.awaited import Awaited
from gt.cluster.ray.child import ending_with_parent, environment
from gt.cluster.ray.connection import Connection, reachable_part
from gt.cluster.ray.groups import Groups
from gt.cluster.ray.node_folder import NodeFolder
from gt.cluster.ray.plan import Plan
from gt.cluster.ray.probe import Probe
from gt.cluster.ray.program_actor import Membership


def test_the_script_has_all_that_is_asked_of_ray():
    cluster = Ray(
        workers=2,
        address="10.0.0.5:6379",
        gpus_per_worker=0.5,
        cpus_per_worker=4,
        strategy="SPREAD",
        namespace="lab",
        engine="pytorch",
        name="mine",
        server_options=["--grace=60"],
        runtime_env={"pip": ["gt-tensor"]},
    )
    name = cluster._plan.cluster
    assert name.startswith("mine-")
    assert (
        cluster.script()
        == f"""\
Ray at the address 10.0.0.5:6379
runtime_env {{"pip": ["gt-tensor"]}}
placement group name {name}:first, SPREAD:
  bundle 0: CPU 4, GPU 0.5
  bundle 1: CPU 4, GPU 0.5
actor in bundle 0: name {name}-server, namespace lab, max_restarts -1, max_task_retries 0, \
num_cpus 0
  python -m gt.server -H NODE -p 0 --publish FOLDER/address --workers 2 --state FOLDER/state \
--grace=60 --key-file - --until-eof
actor in bundle 0: name {name}-0, namespace lab, max_restarts -1, max_task_retries 0, num_cpus 4, \
num_gpus 0.5
  python -m gt.worker --address file://FOLDER/worker-0.address --id 0 --wait 60 \
--backend=pytorch --key-file - --until-eof
actor in bundle 1: name {name}-1, namespace lab, max_restarts -1, max_task_retries 0, num_cpus 4, \
num_gpus 0.5
  python -m gt.worker --address file://FOLDER/worker-1.address --id 1 --wait 60 \
--backend=pytorch --key-file - --until-eof
"""
    )


def test_a_worker_has_a_gpu_if_ray_has_any():
    cluster = Ray(workers=1, memory="1GB")
    assert "and GPU 1 in each bundle, if Ray has any GPU" in cluster.script()
    assert cluster._plan.resolved(has_gpus=True).worker == {"CPU": 1, "GPU": 1}
    assert cluster._plan.resolved(has_gpus=False).worker == {"CPU": 1, "memory": 10**9}
    assert Ray(gpus_per_worker=0)._plan.resolved(has_gpus=True).worker == {"CPU": 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "NEAR"}, "strategy is 'NEAR', expected one of PACK, SPREAD, STRICT_PACK"),
        ({"cpus_per_worker": 0}, "cpus_per_worker is 0, expected more than 0"),
        ({"gpus_per_worker": -1}, "gpus_per_worker is -1, expected 0 or more"),
        ({"keep": True}, "keep=True needs a folder"),
        ({"workers": -1}, "the number of workers is -1, expected 0 or more"),
        ({"memory": "much"}, "much"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(ValueError, match=words):
        Ray(**options)


def test_addresses():
    assert reachable_part(None) is reachable_part("auto") is None
    assert reachable_part("node:6379") == ("node", 6379)
    assert reachable_part("[::1]:6379") == ("::1", 6379)
    assert reachable_part("ray://node:10001") == ("node", 10001)
    assert reachable_part("ray://node") == ("node", 10001)
    with pytest.raises(ClusterError, match="the address of Ray is 'node', expected \"auto\""):
        reachable_part("node")


def fake_ray(error: Exception):
    """Return a Ray that cannot be reached, with Ray's words."""

    def init(*_, **__):
        raise error

    ray = types.SimpleNamespace(init=init, is_initialized=lambda: False, shutdown=lambda: None)
    ray.exceptions = types.SimpleNamespace(RayError=OSError)
    return ray


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            RuntimeError("Version mismatch: The cluster was started with:\n    Python: 3.12.1"),
            ["no connection to Ray at the address 'auto'", "  Version mismatch", "      Python: 3"],
        ),
        (
            ConnectionError("Could not find any running Ray instance."),
            ["no connection to Ray at the address 'auto'", "  Could not find any running Ray"],
        ),
        (
            ImportError("No module named 'grpc'"),
            ["the address 'auto' needs the client of Ray: pip install \"ray[client]\"", "  No mod"],
        ),
    ],
)
def test_the_words_of_ray_follow(error, words, monkeypatch):
    monkeypatch.setattr(connection, "ray_module", lambda: fake_ray(error))
    with pytest.raises(ClusterError) as caught:
        Ray(address="auto").start()
    lines = str(caught.value).splitlines()
    assert all(line.startswith(start) for line, start in zip(lines, words, strict=True)), lines


def test_no_ray(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ray", None)
        with pytest.raises(ClusterError, match="gt.cluster.Ray needs Ray: pip install ray"):
            Ray().start()
    monkeypatch.setattr(connection, "ray_module", lambda: fake_ray(RuntimeError()))
    # Nothing listens at port 1.
    with pytest.raises(ClusterError, match="no Ray can be reached at the address '127.0.0.1:1'"):
        Connection("127.0.0.1:1", None, {})
    with pytest.raises(ClusterError, match="is not started"):
        Ray().scale(2)


def test_the_key_is_not_shown():
    assert "secret" not in repr(Membership("cluster", "secret", "server", None))


def test_coroutines_wait_for_a_text():
    awaited = Awaited()

    async def wait():
        assert await awaited.changed(None, 0.01) is None
        threading.Timer(0.05, awaited.set, ["here"]).start()
        texts = await asyncio.gather(awaited.changed(None, 30), awaited.changed(None, 30))
        return [*texts, await awaited.changed("there", 30)]

    assert asyncio.run(wait()) == ["here", "here", "here"]


def test_the_folder_of_a_node(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    left, used = NodeFolder("left"), NodeFolder("used")
    assert left.path.stat().st_mode & 0o777 == 0o700
    long_ago = time.time() - 7200
    for folder in (left, used):
        os.utime(folder.path / "lock", (long_ago, long_ago))
    os.close(left._lock)
    folder = NodeFolder("new")
    assert not left.path.exists() and used.path.exists(), "a killed owner's folder is removed"
    assert [folder.note_start("worker-0") for _ in range(4)] == [0, 0, 0.5, 1]
    folder.forget("worker-0")
    assert not folder.path.exists()
    used.path.chmod(0o755)
    with pytest.raises(PermissionError, match="others may use the folder"):
        NodeFolder("used")
    for opened in (used, folder):
        os.close(opened._lock)


def test_a_child_ends_with_its_parent(monkeypatch):
    command = ending_with_parent(["program", "--option"])
    assert command[-3:] == [str(os.getpid()), "program", "--option"]
    assert environment(["0", "GPU-1"])["CUDA_VISIBLE_DEVICES"] == "0,GPU-1"
    assert environment([])["CUDA_VISIBLE_DEVICES"] == ""
    monkeypatch.setenv("PYTHONPATH", "/first")
    assert environment([]).get("PYTHONPATH", "/first:").startswith("/first:")


class FakeUtil:
    """What is asked of placement groups; each node is named after its group."""

    def __init__(self):
        self.asked = []

    def placement_group(self, bundles, strategy, **options):
        self.asked.append((len(bundles), strategy, options.get("bundle_label_selector")))
        return options["name"]

    def placement_group_table(self, handle):
        return {"state": "CREATED", "bundles_to_node_id": {0: f"node-{handle[-1]}", 1: ""}}


@pytest.mark.parametrize(
    ("strategy", "added"),
    [
        ("PACK", [(1, "PACK", None), (1, "PACK", None)]),
        ("STRICT_SPREAD", [(2, "STRICT_SPREAD", [{"ray.io/node-id": "!in(node-t)"}] * 2)]),
        ("STRICT_PACK", [(2, "STRICT_PACK", [{"ray.io/node-id": "in(node-t)"}] * 2)]),
    ],
)
def test_groups_of_added_workers(strategy, added):
    util = FakeUtil()
    plan = Plan("c", None, None, strategy, {"CPU": 1}, False, False)
    groups = Groups(types.SimpleNamespace(util=util), plan)
    groups.add_first(2)
    groups.add([1, 2, 3])
    assert util.asked == [(2, strategy, None), *added]
    groups.add([2])
    assert len(util.asked) == 1 + len(added), "what is asked already is not asked again"


class FakeTask:
    """A task of Ray whose call is its answer."""

    def __init__(self, answer):
        self.answer = answer

    def options(self, **options):
        assert options == {"num_cpus": 0, "max_retries": 0}
        return types.SimpleNamespace(remote=lambda: self.answer)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("n1", "0.0.1", ""), f"the node n1 of Ray has gt 0.0.1, and this program {__version__}"),
        (("n1", None, "No module named 'gt'"), "the node n1 of Ray has no GT: install it there"),
        (("n1", __version__, ""), None),
    ],
)
def test_nodes_have_the_same_version(answer, words):
    ray = types.SimpleNamespace(
        remote=lambda _: FakeTask(answer),
        wait=lambda calls, **_: (calls, []),
        get=lambda call: call,
        exceptions=types.SimpleNamespace(RayError=OSError),
    )
    probe = Probe(ray, None, None)
    if words is None:
        assert probe.is_answered()
    else:
        with pytest.raises(ClusterError, match=words):
            probe.is_answered()
