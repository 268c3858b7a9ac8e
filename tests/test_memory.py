"""Quotas of memory, and spilling and errors where memory is short."""

import os
import re
import signal
import time
from pathlib import Path

import gt
import numpy as np
import pytest
from processes import (
    cluster,
    embedded_only,
    line_in_program,
    linux_only,
    output_of,
    run_gt,
    run_program,
    run_python,
    start_program,
    write_key,
)

pytestmark = embedded_only

MB = 1_000_000


def policy(folder: Path, text: str) -> tuple[str, str]:
    (folder / "policy.yaml").write_text(text)
    return "--policy", str(folder / "policy.yaml")


def client(address: str, code: str, **environment: str):
    """Run code on a server; return its output."""
    done = run_python(f"import gt, time\ngt.connect('{address}')\n{code}", **environment)
    assert done.returncode == 0, done
    return done.stdout


def test_exceeding_a_quota_fails_and_names_variables_and_lines(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options) as (address, _):
        printed = output_of("memory/exceeds_quota", address)
    first, second, third = (
        re.escape(line_in_program("memory/exceeds_quota", f"# the {which} tensor"))
        for which in ("first", "second", "third")
    )
    assert "it needs 40.0 MB, and all without a user's key holds 80.0 MB of 100.0 MB" in printed
    largest = rf"the largest are weights: float32 \(10000000,\) of {first}, 40.0 MB,"
    assert re.search(largest, printed), printed
    assert re.search(rf"\n  moments: float32 \(10000000,\) of {second}, 40.0 MB\n", printed), (
        printed
    )
    assert re.search(
        rf"issued at {third}\n    other = .*\n\[2.0, 2.0, 2.0\] 2.0\n3.0\n$", printed
    ), printed


def test_a_loop_that_frees_its_values_fits_into_a_quota(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    code = "for i in range(8):\n    x = gt.full((12_000_000,), float(i))\nprint(x[0].item())\n"
    with cluster(1, *options) as (address, _):
        assert client(address, code) == "7.0\n"


@pytest.mark.parametrize("kind", ["rebound", "data", "window"])
def test_a_loop_of_any_length_fits_into_a_quota(tmp_path, kind):
    """Hot or not, the frees of an iteration make room at their places in the program."""
    options = policy(tmp_path, f"default: {{memory: {4 * 240_000 + 1000}}}\n")
    with cluster(1, *options) as (address, _):
        for iterations in (3, 10, 60, 300):
            assert output_of("memory/loops", address, kind, iterations) == "True\n", iterations


def test_small_tensors_count_for_a_quota(tmp_path):
    """Server and worker keep a record of each tensor, also of views, which share their memory."""
    options = policy(tmp_path, "default: {memory: 10MB}\n")
    with cluster(1, *options) as (address, _):
        for kind in ("whole", "view", "empty"):
            printed = output_of("memory/many_small", address, kind)
            assert printed.startswith("True "), printed
            assert "MB of it for the records of tensors, which are many" in printed, printed
            assert printed.endswith("\n500500.0\n"), printed


def test_a_late_free_makes_room(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options) as (address, _):
        waits, value = output_of("memory/frees_late", address).splitlines()
    assert "of memory of all without a user's key" in waits and value == "1.0"


def test_the_bytes_of_sessions_are_of_one_moment(tmp_path):
    """Two sessions share a quota that has room for one of them: their sum never exceeds it."""
    options = policy(tmp_path, "default: {memory: 1MB}\n")
    with cluster(1, *options) as (address, _):
        with gt.Session(address):
            programs = [start_program("memory/takes_turns", address) for _ in range(2)]
            while any(program.poll() is None for program in programs):
                held = [session["bytes"] for session in gt.status().sessions]
                assert sum(held) <= 1_000_000, held
    assert [program.communicate() for program in programs] == [("", "")] * 2
    assert [program.returncode for program in programs] == [0, 0]


def test_a_users_sessions_share_a_quota_and_others_have_their_own(tmp_path):
    key = tmp_path / "key"
    write_key(key, run_gt("key").stdout)
    keyed = ("--key-file", str(key))
    ada, eve = (
        run_gt("key", "--user", name, "--of-file", str(key)).stdout.strip()
        for name in ("ada", "eve")
    )
    options = (*keyed, *policy(tmp_path, "users: {ada: {memory: 50MB}, eve: {memory: 50MB}}\n"))
    hold = "x = gt.ones(10_000_000)\nprint(x[0].item(), flush=True)\n"
    with cluster(1, *options, worker_options=keyed) as (address, _):
        first = gt.Session(address, key_file=str(_key(tmp_path, "ada", ada)))
        with first.use():
            kept = gt.ones(10_000_000)
            assert kept[0].item() == 1.0
            second = run_python(f"import gt\ngt.connect('{address}')\n{hold}", GT_KEY=ada)
            assert second.returncode == 1
            assert "user ada holds 40.0 MB of 50.0 MB" in second.stderr
            assert f"\n  others hold {first.name} 40.0 MB\n" in second.stderr
            assert re.fullmatch(r"\S+ ada@\S+ #1", first.name), first.name
            assert client(address, hold, GT_KEY=eve) == "1.0\n"
            [own] = gt.status().sessions
            assert (own["bytes"], own["memory_quotas"]) == (40 * MB, [("user ada", 50 * MB)])
            del kept
        first.close()


def _key(folder: Path, name: str, key: str) -> Path:
    write_key(folder / name, key)
    return folder / name


def test_a_slice_is_copied_when_its_large_tensor_is_freed(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    code = """
rows = [gt.ones(20_000_000)[10 * i : 10 * i + 10] for i in range(4)]
print(sum(row.sum().item() for row in rows))
print(gt.status().sessions[0]["bytes"] < 1000)
"""
    with cluster(1, *options) as (address, _):
        assert client(address, code) == "40.0\nTrue\n"


def test_status_names_the_session_that_another_waits_for(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options) as (address, _):
        holder = gt.Session(address)
        with holder.use():
            kept = gt.ones(20_000_000)
            assert kept[0].item() == 1.0
            waiter = gt.Session(address)
            with waiter.use():
                more = gt.ones(10_000_000)
            # The holder is computing and may free memory, so the other session waits.
            busy = gt.ones(1000, 1000)
            for _ in range(60):
                busy = busy @ busy * 1e-3
            with waiter.use():
                got = more[0]
                seen = set()
                until = time.monotonic() + 20
                while time.monotonic() < until and len(seen) < 2:
                    for session in gt.status().sessions:
                        if "of memory of all without a user's key" in session["waits_for"]:
                            seen |= {session["waits_for"].split(",")[0], *session["behind"]}
            assert len(seen) == 2, seen
            assert any(text.endswith("#1") for text in seen), seen
            del kept
            busy[0, 0].item()
        with waiter.use():
            assert got.item() == 1.0
            del got, more
        waiter.close()
        with holder.use():
            del busy
        holder.close()


PRINTED = "1087500000.0\n56.0\nTrue True\n"


def test_tensors_without_room_are_spilled_and_read_back(tmp_path):
    spill = tmp_path / "spill"
    options = ("--memory", "100MB", "--spill-dir", str(spill), "--spill-limit", "1GB")
    with cluster(1, worker_options=options) as (address, _):
        assert output_of("memory/spilled_sums", address) == PRINTED
        # The end of the session removes its files.
        until = time.monotonic() + 10
        while any(spill.glob("*/*.safetensors")) and time.monotonic() < until:
            time.sleep(0.05)
        assert [path.name for path in spill.glob("*/*.safetensors")] == []
    assert list(spill.iterdir()) == [], "the end of the worker removes its folder"


def test_an_embedded_session_spills(tmp_path):
    spill = tmp_path / "spill"
    limits = {"GT_MEMORY": "100MB", "GT_SPILL_DIR": str(spill), "GT_SPILL_LIMIT": "1GB"}
    assert output_of("memory/spilled_sums", **limits) == PRINTED
    assert list(spill.iterdir()) == []


def test_expanded_tensors_are_not_spilled_and_others_make_room_to_read_them(tmp_path):
    """Spilled, an expanded tensor of 4 MB would become 400 MB, which could not be read back."""
    limits = {"GT_MEMORY": "100MB", "GT_SPILL_DIR": str(tmp_path), "GT_SPILL_LIMIT": "1GB"}
    done = run_program("memory/repeated_elements", **limits)
    assert done.stdout == "200000000.0 True\n(10, 1000000) 200000000.0 True\n", done


def test_training_with_spilling_computes_the_same_bits(tmp_path):
    limits = {"GT_MEMORY": "4MB", "GT_SPILL_DIR": str(tmp_path), "GT_SPILL_LIMIT": "100MB"}
    tight, free = run_program("memory/training", **limits), run_program("memory/training")
    assert tight.returncode == 0, tight
    assert tight.stdout.splitlines()[0] == free.stdout.splitlines()[0]
    assert tight.stdout.splitlines()[1] == "True"


def test_an_operation_without_room_fails_but_not_the_session():
    printed = output_of("memory/exceeds_memory", GT_MEMORY="100MB")
    assert "it needs 40.0 MB, and 80.0 MB of the worker's 100.0 MB are held" in printed
    assert "the largest are xs: float32" in printed
    assert printed.endswith("\n1.0\n")


@pytest.mark.parametrize("framework", ["gt", "torch"])
def test_a_program_halves_the_batch_until_it_fits(framework):
    pytest.importorskip(framework)
    printed = output_of("memory/halves_the_batch", framework, GT_MEMORY="100MB").splitlines()
    assert printed[0] == "no memory for 64" and len(printed) >= 3
    assert printed[-1] == "3000000.0"


def test_a_program_halves_the_batch_until_it_fits_its_quota(tmp_path):
    with cluster(1, *policy(tmp_path, "default: {memory: 100MB}\n")) as (address, _):
        printed = client(
            address,
            "batch = 64\n"
            "while True:\n"
            "    try:\n"
            "        print(gt.ones(batch, 1_000_000)[0].sum().item(), batch)\n"
            "        break\n"
            "    except gt.OutOfMemoryError:\n"
            "        batch //= 2\n",
        )
    total, batch = printed.split()
    assert total == "1000000.0" and 2 <= int(batch) <= 16


def test_the_error_of_an_engine_without_memory():
    """GT_MEMORY claims that there is enough memory; the allocation of the engine fails."""
    code = "import gt\ntry:\n    gt.zeros(1 << 24, 1 << 22).exp().sum().item()\n"
    code += "except gt.OutOfMemoryError as error:\n    print(error)"
    done = run_python(code, GT_MEMORY="999TB")
    assert "out of memory: 281474976710656 bytes asked for" in done.stdout, done


def test_a_spill_folder_that_cannot_be_written_is_reported_and_loses_nothing(tmp_path):
    if os.geteuid() == 0 and not Path("/dev/full").exists():
        pytest.skip("root can write everything here")
    code = "import gt\nx = gt.ones(20_000_000)\ny = gt.ones(20_000_000)\nprint(x[0].item())\n"
    file = tmp_path / "file"
    file.write_text("no folder")
    done = run_python(code, GT_MEMORY="100MB", GT_SPILL_DIR=str(file))
    assert done.stdout == "1.0\n", done
    assert f"nothing can be written away to {file}" in done.stderr


def test_invalid_sizes_are_reported(tmp_path):
    done = run_gt("worker", "--memory", "lots")
    assert done.returncode == 2 and "the size is 'lots', expected one as 16GB" in done.stderr
    done = run_python("import gt\nprint(gt.ones(2).sum().item())", GT_MEMORY="lots")
    assert done.stdout == "2.0\n"
    assert "GT_MEMORY is 'lots', expected a size, as 16GB, 512MiB" in done.stderr
    path = tmp_path / "policy.yaml"
    path.write_text("users:\n  ada: {memory: lots}\n")
    done = run_gt("server", "--policy", str(path))
    assert f"{path}:2:17: 'users.ada.memory' is 'lots', expected a size" in done.stderr


def test_lowering_a_quota_frees_nothing(tmp_path):
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options) as (address, (server, *_)):
        with gt.Session(address):
            kept = gt.ones(20_000_000)
            assert kept[0].item() == 1.0
            policy(tmp_path, "default: {memory: 50MB}\n")
            server.send_signal(signal.SIGHUP)
            until = time.monotonic() + 10
            while gt.status().sessions[0]["memory_quotas"][0][1] != 50 * MB:
                assert time.monotonic() < until
                time.sleep(0.05)
            assert kept[1].item() == 1.0, "the session keeps its tensors"
            with pytest.raises(gt.WorkerError, match="holds 80.0 MB of 50.0 MB"):
                gt.ones(10)[0].item()
            assert np.asarray(kept).sum() == 2e7
            del kept
            assert gt.ones(10).sum().item() == 10.0
        server.terminate()
        log = server.stderr.read()
    assert (
        "all without a user's key holds 80000000 bytes on worker w0, and may hold 50000000" in log
    )


def test_a_forked_child_does_not_remove_spilled_tensors(tmp_path):
    limits = {"GT_MEMORY": "100MB", "GT_SPILL_DIR": str(tmp_path), "GT_SPILL_LIMIT": "1GB"}
    done = run_program("memory/fork_with_spilled", **limits)
    assert done.stdout == "475000000.0 True\n525000000.0\n475000000.0\n", done
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_spilled_tensors_is_complete(tmp_path):
    limits = {
        "GT_MEMORY": "100MB",
        "GT_SPILL_DIR": str(tmp_path / "spill"),
        "GT_SPILL_LIMIT": "1GB",
    }
    done = run_program("memory/checkpoint_of_spilled", tmp_path / "checkpoint", **limits)
    assert (done.returncode, done.stdout) == (0, "190.0\n475000000.0\n"), done


@pytest.mark.parametrize("engine", ["numpy", "pytorch", "jax"])
def test_quotas_are_exact_on_engines_in_python(tmp_path, engine):
    """A reshape that copies needs memory; a view does not, on engines that have views."""
    pytest.importorskip(
        {"pytorch": "torch"}.get(engine, engine), reason="make test-all installs it"
    )
    options = policy(tmp_path, "default: {memory: 100MB}\n")
    with cluster(1, *options, worker_options=("--backend", engine)) as (address, _):
        done = run_program("memory/reshape_transposed", address)
    if engine == "jax":
        assert "it needs 60.0 MB" in done.stderr, done
    else:
        assert done.stdout.splitlines() == ["1.0", "refused"], done


@linux_only
def test_an_operation_beyond_its_budget_fails_but_not_the_worker(tmp_path):
    with cluster(1, worker_options=("--memory", "100MB")) as (address, (_, worker)):
        printed = output_of("memory/large_operations", address).splitlines()
        most = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{worker.pid}/status").read_text())[1]
    made = ["argmax", "std", "refused", "refused", "matmul", "refused"]
    assert printed == ["536870912.0", *made, "3.0"]
    assert int(most) < 250_000, "100 MB, the workspace, and the process itself"
