"""Clusters on this machine: gt.cluster.Local, and its parts."""

import os
import signal
import subprocess
import sys

import gt
import gt.cluster
import pytest
from cluster_command import processes_of, runs, until, words_of
from gt.cluster.adaptive import AdaptiveRule
from gt.cluster.folder import ClusterFolder
from processes import embedded_only, linux_only, one_engine_only, run_python, unsharded_only

#: The number of clusters that start at once; `make test-machines` has 100.
STARTS = int(os.environ.get("GT_TEST_STARTS", "8"))

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only, linux_only]


def test_a_program_uses_it():
    code = """
import gt
with gt.cluster.Local(workers=2) as cluster:
    gt.connect(cluster)
    print((gt.ones(3) + 1).tolist(), len(gt.status().workers), cluster.status().wanted)
    cluster.scale(3)
    import time
    while len(cluster.status().workers) < 3:
        time.sleep(0.05)
    cluster.scale(1)
    while len(cluster.status().workers) > 1:
        time.sleep(0.05)
    print((gt.ones(3) + 1).tolist(), sorted(cluster.logs()))
    gt.disconnect()
print(cluster)
"""
    done = run_python(code)
    logs = ["server", "worker-0", "worker-1", "worker-2"]
    assert done.returncode == 0, done
    assert done.stdout.startswith(f"[2.0, 2.0, 2.0] 2 2\n[2.0, 2.0, 2.0] {logs}\n<gt.cluster.Local")


def test_nothing_is_left_when_its_program_is_killed(tmp_path):
    code = f"""
import gt, sys, time
cluster = gt.cluster.Local(workers=2, folder={str(tmp_path)!r}).start()
print("started", flush=True)
time.sleep(100)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout.readline() == "started\n"
        left = processes_of(tmp_path / "address")
        assert len(left) == 3
        owner.kill()
        owner.wait()
        until(lambda: not any(map(runs, left)), limit=10)


def test_a_killed_worker_comes_back_and_a_killed_server_is_told(tmp_path):
    with gt.cluster.Local(workers=1, folder=tmp_path) as cluster:
        (worker,) = [
            of for of in processes_of(tmp_path / "address") if "worker/start.py" in words_of(of)
        ]
        os.kill(worker, signal.SIGKILL)
        until(lambda: not cluster.status().workers)
        until(lambda: len(cluster.status().workers) == 1)
        (server,) = [of for of in processes_of(tmp_path / "address") if "gt.server" in words_of(of)]
        os.kill(server, signal.SIGKILL)
        until(lambda: any("its server has ended" in note for note in cluster.status().notes))


def test_the_key_is_in_no_command_line_environment_or_log(tmp_path):
    with gt.cluster.Local(workers=1, folder=tmp_path) as cluster:
        key = cluster.folder.key.read_text().strip()
        pids = processes_of(tmp_path / "address")
        assert len(pids) == 2
        for pid in pids:
            assert key not in words_of(pid)
            with open(f"/proc/{pid}/environ") as environment:
                assert key not in environment.read()
        assert not any(key in text for text in cluster.logs().values())
        assert key not in cluster.script() and key not in repr(cluster)
        assert oct(cluster.folder.key.stat().st_mode)[-3:] == "600"
        assert oct(tmp_path.stat().st_mode)[-3:] in ("700", "755")


def test_many_at_once_do_not_meet(tmp_path):
    """Each has its own port and key, also while others start."""
    code = """
import gt
with gt.cluster.Local(workers=1, name="same") as cluster:
    gt.connect(cluster)
    print(cluster.status().address, (gt.ones(2) + 1).tolist())
    input()
    gt.disconnect()
"""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(STARTS)
    ]
    lines = [of.stdout.readline() for of in started]
    errors = [of.communicate("\n", timeout=300)[1] for of in started]
    assert errors == [""] * len(started)
    assert all(line.endswith("[2.0, 2.0]\n") for line in lines)
    assert len({line.split()[0] for line in lines}) == len(started)


def test_a_failed_start_says_why_and_leaves_nothing(tmp_path):
    with pytest.raises(gt.cluster.ClusterError) as failed:
        gt.cluster.Local(workers=1, engine="nosuch", folder=tmp_path).start()
    assert "did not start: worker 0 failed 3 times" in str(failed.value)
    assert "there is no engine 'nosuch'" in str(failed.value)
    assert processes_of(tmp_path / "address") == []
    with pytest.raises(gt.cluster.ClusterError, match="its server has ended") as failed:
        gt.cluster.Local(server_options=["--polici=x"], folder=tmp_path).start()
    assert "--polici=x" in str(failed.value)
    with pytest.raises(ValueError, match="the number of workers is -1"):
        gt.cluster.Local(workers=-1)
    with pytest.raises(gt.cluster.ClusterError, match="is not started"):
        gt.cluster.Local().scale(2)


def test_a_second_cluster_does_not_take_a_folder_in_use(tmp_path):
    with gt.cluster.Local(workers=1, folder=tmp_path) as first:
        with pytest.raises(gt.cluster.ClusterError, match="uses the folder"):
            gt.cluster.Local(workers=1, folder=tmp_path).start()
        assert len(first.status().workers) == 1
    assert gt.cluster.Local(workers=0, folder=tmp_path).start().close() is None


def test_the_number_of_workers_follows_the_work():
    rule = AdaptiveRule(0, 8, idle=60)
    work = {"sessions": [{"open": 5}], "workers": [{"queue": 2}]}
    calm = {"sessions": [{"open": 0}], "workers": [{"queue": 0}]}
    size = rule.decide(0, 0, work)
    assert size == 1
    sizes = []
    for second in range(1, 14):
        size = rule.decide(second, size, work)
        sizes.append(size)
    assert sizes[-1] == 8 and sorted(set(sizes)) == [1, 2, 4, 8]
    assert rule.decide(20, size, calm) == 8
    assert rule.decide(79, size, calm) == 8
    assert rule.decide(80, size, calm) == 0
    for minimum, maximum in [(-1, 2), (3, 2), (0, 0)]:
        with pytest.raises(ValueError, match="expected 0 <= minimum <= maximum"):
            AdaptiveRule(minimum, maximum, idle=1)


def test_two_makers_of_a_key_have_the_same(tmp_path):
    assert ClusterFolder(tmp_path).key.read_text() == ClusterFolder(tmp_path).key.read_text()
