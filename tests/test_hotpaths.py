"""Hot paths: repeated instructions run as one program, with the same results."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import gt
import numpy as np
import pytest
from processes import cluster, embedded_only, line_in_program, run_program, run_python


def losses(steps=40, *address, **environment):
    done = run_program("hotpaths/training", steps, "losses", *address, **environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def statistics(steps, **environment):
    """Train; return the statistics of the worker, and their printed form."""
    done = run_program("hotpaths/training", steps, "statistics", **environment)
    assert done.returncode == 0, done.stderr
    stats, _, text = done.stdout.partition("\n")
    return json.loads(stats), text


def test_templates_change_no_number():
    cold = losses(GT_AUTO_COMPILE="0")
    np.testing.assert_allclose(losses(), cold, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(losses(GT_COMPILE="1"), cold, rtol=1e-5, atol=1e-5)
    batched = losses(GT_AUTO_COMPILE="0", GT_WORKER_BATCH_SIZE="7")
    np.testing.assert_allclose(batched, cold, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("engine", ["numpy", "pytorch", "jax"])
def test_every_engine_trains_alike(engine):
    if engine != "numpy":
        pytest.importorskip("torch" if engine == "pytorch" else engine)
    native = losses(15)
    np.testing.assert_allclose(losses(15, GT_BACKEND=engine), native, rtol=1e-4, atol=1e-4)


def test_compiled_engines_train_alike():
    pytest.importorskip("jax")
    native = losses(15)
    options = {"GT_BACKEND": "jax", "GT_COMPILE": "1", "GT_DEBUG_COMPILE": "1"}
    done = run_program("hotpaths/training", 15, "losses", **options)
    assert "gt: compiled" in done.stderr and "warning" not in done.stderr, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), native, rtol=1e-4, atol=1e-4)


def test_statistics_of_hot_paths():
    # On a CPU only the native engine compiles without GT_COMPILE.
    compiles = os.environ.get("GT_BACKEND", "native") == "native"
    stats, text = statistics(120)
    operations, hot, compiled = stats["operations"], stats["hotpath"], stats["compilation"]
    assert set(hot) == {
        *("total_instructions", "hot_instructions", "unique_sequences"),
        *("hot_sequences", "hot_threshold", "top_sequences"),
    }, hot
    assert hot["hot_instructions"] > 0.8 * hot["total_instructions"], hot
    assert hot["hot_threshold"] == 3 and hot["hot_sequences"] >= 1
    assert int(compiles) <= operations["compiled"] <= operations["total"]
    assert operations["total"] == operations["compiled"] + operations["eager"]
    top = hot["top_sequences"][0]
    assert top["repetitions"] > 5 and top["length"] > 20, top
    assert compiled["cache_size"] >= 1 and compiled["cache_hits"] > 20
    assert compiled["failures"] == 0, compiled
    assert stats["engine"] in ("jax", "pytorch") or compiled["compiled"] == []
    assert compiled["checked"] >= int(compiles), compiled
    for word in ("hot paths:", "repetitions", "hits", "misses", "to compile", "saved"):
        assert word in text


@pytest.mark.parametrize("backend", ["native", "pytorch", "jax"])
def test_compiled_code_can_be_read(backend, tmp_path):
    if backend != "native":
        pytest.importorskip("torch" if backend == "pytorch" else "jax")
    environment = {
        "GT_BACKEND": backend,
        "GT_COMPILE": "1",
        "GT_DEBUG_COMPILE": "1",
        "GT_SAVE_COMPILED_CODE": str(tmp_path / "code"),
    }
    done = run_python(
        "import gt\n"
        "x = gt.ones(64, 64)\n"
        "for _ in range(60):\n"
        "    x = ((x * 0.5 + 1).tanh() @ x).sigmoid()\n"
        "x.sum().item()\n",
        **environment,
    )
    assert done.returncode == 0, done.stderr
    assert "gt: compiled" in done.stderr and "operations (mul" in done.stderr, done.stderr
    files = list((tmp_path / "code").iterdir())
    assert files and all(file.name.startswith(f"{backend}-") for file in files)
    text = "".join(file.read_text() for file in files)
    assert "= tanh(%" in text and "outputs: %" in text
    assert {"native": "tile by tile", "pytorch": "def call(", "jax": "HloModule"}[backend] in text

    # A folder that cannot be created is reported, and changes nothing else.
    environment["GT_SAVE_COMPILED_CODE"] = os.devnull
    done = run_program("hotpaths/training", 9, "losses", **environment)
    assert done.returncode == 0 and "GT_SAVE_COMPILED_CODE is to name a folder" in done.stderr


@pytest.mark.parametrize("backend", ["native", "numpy", "pytorch", "jax"])
def test_a_program_may_end_during_compilation(backend):
    if backend in ("pytorch", "jax"):
        pytest.importorskip("torch" if backend == "pytorch" else "jax")
    program = (
        "import gt\n"
        "for number in range(20):\n"
        "    for step in range(6): x = gt.ones(4, 4 + number).exp().sum(-1).tanh()\n"
        "    x.sum().item()\n"
    )
    done = run_python(program, GT_BACKEND=backend, GT_AUTO_COMPILE="1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GT_AUTO_COMPILE", "maybe", "0 or 1"),
        ("GT_COMPILE", "-1", "0 or 1"),
        ("GT_CHECK_NAN", "si", "0 or 1"),
        ("GT_DEBUG_COMPILE", "2", "0 or 1"),
        ("GT_HOTPATH_THRESHOLD", "abc", "a whole number from 1 on"),
        ("GT_WORKER_BATCH_SIZE", "0", "a whole number from 1 on"),
    ],
)
def test_an_invalid_variable_is_reported(name, value, expected):
    program = "import gt\nprint(gt.ones(2).sum().item())\n"
    done = run_python(program, **{"GT_BACKEND": "native", name: value})
    warning = f"gt: warning: {name} is '{value}', expected {expected}: it is ignored\n"
    assert (done.stdout, done.stderr) == ("2.0\n", warning)


def test_a_scope_is_compiled_although_its_tensors_are_old():
    assert run_program("hotpaths/scope_of_old_tensors").stdout == "10\n"


def test_the_threshold_and_the_switch():
    def is_hot(**environment):
        return statistics(9, **environment)[0]["hotpath"]["hot_instructions"] > 0

    assert is_hot()
    assert not is_hot(GT_AUTO_COMPILE="0")
    assert not is_hot(GT_HOTPATH_THRESHOLD="50")


def test_the_log_shows_hot_paths(tmp_path):
    log = tmp_path / "gt.log"
    program = (
        "import gt\n"
        "x = gt.ones(4)\n"
        "for i in range(60):\n"
        "    x = (x * 0.5).exp()\n"
        "    x = x + 1\n"
        "x.sum().item()\n"
    )
    assert run_python(program, GT_INSTRUCTION_LOG=str(log)).returncode == 0
    lines = log.read_text().splitlines()
    parts = [[part.strip() for part in line.split("|")] for line in lines]
    events = [(part[2], part[4]) for part in parts]
    starts = [at for at, event in enumerate(events) if event[1] == "WorkerHotPathStart"]
    assert len(starts) >= 3
    assert any(event == ("RECV", "HotPathStart") for event in events)
    for start in starts:
        # The operations of an iteration are between its start and its end.
        end = next(at for at in range(start, len(events)) if events[at][1] == "WorkerHotPathEnd")
        inside = {event[1] for event in events[start + 1 : end]}
        assert inside <= {"WorkerUnaryOp", "WorkerBinaryOp", "WorkerFreeTensor"} and inside
    # Every operation is logged once as sent to the worker.
    sent = {("WORKER_SEND", "WorkerUnaryOp"), ("WORKER_SEND", "WorkerBinaryOp")}
    assert sum(event in sent for event in events) == 180


def test_a_compiled_scope_is_hot_from_its_second_run_on():
    assert run_program("hotpaths/scope_twice").stdout == "3 True\n12 1\n"


def test_an_error_in_a_hot_path_names_its_line():
    program = "hotpaths/bad_index"
    done = run_program(program)
    first, *error, last = done.stdout.splitlines()
    assert first == "[2, 4]" and last == "[2.0, 2.0]"
    assert "index 9 is out of range for an axis of length 8" in error[0]
    assert "index_select" in error[0] and any(
        line_in_program(program, "# the line") in line for line in error
    ), done.stdout


def test_nan_is_reported_by_the_operation_that_computes_it():
    program = "hotpaths/nan"
    done = run_program(program, GT_CHECK_NAN="1")
    text = done.stdout
    assert "log of float32 (2,)" in text and "has a NaN, first as element 1 of 2" in text, done
    assert line_in_program(program, "# the line") in text and text.endswith("True\n")
    assert run_python("import gt; print(gt.tensor([-1.0]).log().isnan().item())").stdout == "True\n"


@embedded_only
def test_two_clients_are_hot_at_the_same_time():
    with cluster(workers=1) as (address, _):
        alone = losses(20)
        with ThreadPoolExecutor(2) as pool:
            together = [pool.submit(losses, 20, address) for _ in range(2)]
        for each in together:
            np.testing.assert_allclose(each.result(), alone, rtol=1e-5, atol=1e-5)


def test_fetches_in_between_do_not_end_a_hot_loop():
    x = gt.ones(5)
    seen = []
    for step in range(50):
        x = x * 1.5
        x = x - x.mean()
        x = x + 1
        if step in (20, 33):
            seen.append(x.tolist())
        if step == 25:
            kept = x
    assert np.allclose(x.tolist(), 1) and np.allclose(kept.tolist(), 1) and len(seen) == 2


def test_memory_does_not_grow_in_a_hot_loop():
    if os.environ.get("GT_TEST_SHARDED"):
        pytest.skip("counts the tensors of one worker")
    x = gt.ones(100)
    held = []
    for step in range(200):
        x = (x * 0.5).tanh() + 1
        if step % 50 == 49:
            x.sum().item()
            stats = gt.debug.get_worker_stats().values()
            held.append(sum(worker["memory"]["tensors"] for worker in stats))
    assert max(held[1:]) <= held[0] + 1, held
