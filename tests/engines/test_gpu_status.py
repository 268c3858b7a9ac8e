"""The status shows the GPUs of workers, as NVIDIA's library (here a stand-in) describes them."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import gt
import pytest
from cluster_command import until
from nvml import GPU, StandInLibrary
from processes import cluster, linux_only, one_engine_only, run_gt, unsharded_only

# These tests start workers with their own engines.
pytestmark = [one_engine_only, unsharded_only, linux_only]

HERE = str(Path(__file__).parent)

#: What the status shows of the stand-in's GPU.
SHOWN = {
    "name": "NVIDIA H200",
    "index": 3,
    "uuid": GPU["uuid"],
    "used_percent": 87,
    "used_bytes": 12_000_000_000,
    "total_bytes": 150_000_000_000,
}
UNKNOWN = dict.fromkeys(("used_percent", "used_bytes", "total_bytes"))


@pytest.fixture
def library(tmp_path):
    return StandInLibrary(tmp_path)


@contextmanager
def gpu_worker(address: str, library: StandInLibrary, gpu: object = GPU["uuid"], **environment):
    """Yield the process of a worker that computes on a GPU; it must end without a message."""
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "gt.worker", "-p", port, "--id", "gpu"]
    command += ["--backend", "gpu_engines:OnGPU"]
    path = f"{HERE}:{os.environ.get('PYTHONPATH', HERE)}"
    env = {**os.environ, **library.environment, "PYTHONPATH": path, "GT_TEST_GPU": str(gpu)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env={**env, **environment}, **pipes)
    try:
        assert process.stdout.readline().startswith("gt worker: gpu")
        yield process
        process.terminate()
        assert process.communicate(timeout=30)[1] == ""
    finally:
        process.kill()
        process.communicate()


@contextmanager
def session_on(library: StandInLibrary, gpu: object = GPU["uuid"], **environment):
    """Compute on a worker with a GPU."""
    with (
        cluster(workers=0) as (address, _),
        gpu_worker(address, library, gpu, **environment),
        gt.Session(address),
    ):
        assert (gt.ones(3) + 1).tolist() == [2.0] * 3
        yield


def shown() -> dict | None:
    """Return what the status shows of the GPU of the only worker."""
    (worker,) = gt.status().workers
    return worker["gpu"]


def test_status_and_top_show_the_gpu_of_each_worker(library):
    with cluster(workers=1) as (address, _), gpu_worker(address, library):
        port = address.rpartition(":")[2]
        with gt.Session(address):
            (gt.ones(3) + 1).tolist()

            def gpus() -> dict:
                return {worker["name"]: worker["gpu"] for worker in gt.status().workers}

            until(lambda: gpus() == {"w0": None, "gpu": SHOWN})
            text = repr(gt.status())
            assert "NVIDIA H200 #3, 87 %, 12.0 GB of 150.0 GB" in text, text
            library.set(percent=12, used=34_000_000_000)
            changed = {**SHOWN, "used_percent": 12, "used_bytes": 34_000_000_000}
            until(lambda: gpus() == {"w0": None, "gpu": changed})
        done = run_gt("top", "--once", "--json", "--port", port)
        workers = json.loads(done.stdout)["workers"]
        assert {worker["name"]: worker["gpu"] for worker in workers} == {"w0": None, "gpu": changed}
        text = run_gt("top", "--once", "--port", port).stdout
        assert ", NVIDIA H200 (GPU 3) 12 % used, 34.0 GB of 150.0 GB" in text, text
        assert text.count("GPU") == 1


def test_a_worker_in_the_programs_process_shows_its_gpu(library):
    code = """
import gt, time
until = time.monotonic() + 20
gt.ones(3).tolist()
while not gt.status().workers[0]["gpu"] and time.monotonic() < until:
    time.sleep(0.01)
print(gt.status().workers[0]["gpu"])
"""
    environment = {
        **library.environment,
        "GT_BACKEND": "gpu_engines:OnGPU",
        "GT_TEST_GPU": str(GPU["uuid"]),
        "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', HERE)}",
    }
    command = [sys.executable, "-c", code]
    env = {**os.environ, **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"{SHOWN}\n", "")


def test_the_gpu_is_read_for_those_who_ask_once_a_second_at_most(library):
    begin = time.monotonic()
    with session_on(library):
        until(lambda: library.calls("read") == 1)
        for _ in range(100):
            (gt.ones(3) + 1).tolist()
        time.sleep(1.5)
        assert library.calls("read") == 1, "nothing has asked"
        for _ in range(100):
            shown()
        assert 2 <= library.calls("read") <= 1 + time.monotonic() - begin
        assert library.calls("init") == 1


def test_nothing_waits_for_a_library_that_does_not_answer(library):
    with session_on(library):
        until(lambda: shown() == SHOWN)
        library.set(hangs=1)
        # It was read while it hangs once nothing is shown that is as old.
        until(lambda: shown() == {**SHOWN, **UNKNOWN})
        assert (gt.ones(3) + 1).tolist() == [2.0] * 3
        library.set()
        until(lambda: shown() == SHOWN)
        library.set(hangs=1)
        reads = library.calls("read")
        until(lambda: shown() is not None and library.calls("read") > reads)
        # The worker also ends while the library hangs.
    library.set()


@pytest.mark.parametrize("code", [9, 18, 999], ids=["no driver", "another driver", "unknown"])
def test_a_library_that_cannot_start_shows_nothing(library, code):
    library.set(init=code)
    with session_on(library):
        until(lambda: library.calls("init") == 1)
        assert shown() is None


def test_a_machine_without_the_library_shows_nothing(library):
    with session_on(library, LD_LIBRARY_PATH="/nowhere"):
        for _ in range(20):
            assert shown() is None
    assert library.calls("init") == 0


def test_workers_without_a_gpu_do_not_look_for_the_library(library, monkeypatch):
    for name, value in library.environment.items():
        monkeypatch.setenv(name, value)
    with cluster(workers=1) as (address, _), gt.Session(address):
        (gt.ones(3) + 1).tolist()
        for _ in range(20):
            assert shown() is None
    assert library.calls("init") == 0


def test_a_gpu_that_the_library_does_not_know_is_not_shown(library):
    with session_on(library, gpu="GPU-00000000-0000-0000-0000-000000000000"):
        until(lambda: library.calls("init") == 1)
        for _ in range(20):
            assert shown() is None


def test_a_uuid_may_be_without_its_prefix(library):
    with session_on(library, gpu=str(GPU["uuid"]).removeprefix("GPU-")):
        until(lambda: shown() == SHOWN)


def test_a_lost_gpu_keeps_its_name(library):
    with session_on(library):
        until(lambda: shown() == SHOWN)
        library.set(status=15)
        until(lambda: shown() == {**SHOWN, **UNKNOWN})
        assert (gt.ones(3) + 1).tolist() == [2.0] * 3
        library.set()
        until(lambda: shown() == SHOWN)


def test_a_library_without_a_function_leaves_out_what_it_is_for(tmp_path):
    library = StandInLibrary(tmp_path, "-DWITHOUT_MEMORY")
    with session_on(library):
        until(lambda: shown() == {**SHOWN, "used_bytes": None, "total_bytes": None})


@pytest.mark.parametrize("prefix", ["MIG-", ""], ids=["as nvidia-smi", "as CUDA"])
def test_of_an_instance_its_memory_is_shown(library, prefix):
    number = "c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"
    library.set(instance=f"MIG-{number}", divided=1)
    with session_on(library, gpu=f"{prefix}{number}"):
        wanted = {**SHOWN, "uuid": f"MIG-{number}", "used_percent": None}
        until(lambda: shown() == wanted)


def test_of_a_divided_gpu_its_use_is_not_shown(library):
    """The library would sum up the instances, also those of others."""
    library.set(divided=1)
    with session_on(library):
        until(lambda: shown() == {**SHOWN, **UNKNOWN})


@pytest.mark.parametrize("uuid", ["7", "b''"])
def test_a_uuid_that_is_no_text_is_an_error(uuid):
    code = f"import gpu_engines; gpu_engines.OnGPU.gpu_uuid = {uuid}; import gt; gt.ones(3)"
    path = f"{HERE}:{os.environ.get('PYTHONPATH', HERE)}"
    env = {**os.environ, "PYTHONPATH": path, "GT_BACKEND": "gpu_engines:OnGPU"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "gpu_uuid" in done.stderr, done.stderr
