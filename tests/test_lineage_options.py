"""The lineage that a server keeps of sessions, by its options, and recovery on other engines."""

import importlib.util
import json

import pytest
from processes import (
    cluster,
    embedded_only,
    one_engine_only,
    run_program,
    start_program,
    unsharded_only,
)
from training import Training, start_worker

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "kept"),
        (["--lineage", "20KB"], "kept"),
        (["--lineage", "20KB", "--lineage-disk", "1MB"], "the server does not keep"),
        (["--lineage-total", "20KB", "--lineage-disk", "1MB"], "the server does not keep"),
        (["--lineage-disk", "1MB"], "kept"),
        (["--lineage", "0"], "keeps no lineage"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_session_can_be_restored_if_the_options_allow_it(options, reason):
    """Either the log is long enough, or the disk has room for snapshots."""
    with cluster(1, *options) as (address, _):
        # Without hot paths, whose log would be short.
        done = run_program("recovery/changing_tensors", address, GT_AUTO_COMPILE="0")
    printed = done.stdout.strip()
    assert printed == reason if reason == "kept" else reason in printed, done


needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)


@pytest.mark.parametrize("other", ["numpy", pytest.param("pytorch", marks=needs_torch)])
def test_another_engine_continues_with_close_results(other):
    """Sums in another order differ in the last digits: after 600 steps by about a millionth."""
    steps = 600
    with cluster(1) as (address, _):
        expected = Training("training/values", address, steps).end()
    with cluster(1) as (address, processes):
        # The session starts on the first worker.
        processes.append(start_worker(address, "other", "--backend", other))
        training = Training("training/values", address, steps)
        training.wait_for(200)
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        found = training.end()
    assert any("are restored" in line for line in training.errors), training.errors
    for left, right in zip(json.loads(expected), json.loads(found), strict=True):
        assert right == pytest.approx(left, rel=1e-3, abs=1e-4)
    # Other bits show that the other engine has computed.
    assert found != expected or other == "numpy"


@pytest.mark.parametrize("engine", ["numpy", pytest.param("pytorch", marks=needs_torch)])
def test_the_same_engine_continues_with_the_same_bits(engine):
    """With one thread, the Python engines are deterministic."""
    steps, options = 400, ["--backend", engine, "--threads", "1"]
    with cluster(2, worker_options=options) as (address, _):
        expected = Training("training/values", address, steps).end()
    with cluster(2, worker_options=options) as (address, processes):
        training = Training("training/values", address, steps)
        training.wait_for(200)
        victim = processes.pop(1)
        victim.kill()
        victim.communicate()
        assert training.end() == expected


def test_a_recovery_is_counted_and_logged(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    with cluster(2) as (address, processes):
        monkeypatch.delenv("GT_INSTRUCTION_LOG")
        with start_program("recovery/one_loss", address) as program:
            assert program.stdout.readline() == "ready\n"
            victim = processes.pop(1)
            victim.kill()
            victim.communicate()
            out, errors = program.communicate("go\n", timeout=30)
    assert out == "2000.0 1\n", errors
    assert errors.count("are restored") == 1, errors
    logged = [line for line in log.read_text().splitlines() if "Recovery" in line]
    assert len(logged) == 1 and "WORKER_RECV" in logged[0], logged
