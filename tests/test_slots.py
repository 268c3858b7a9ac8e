"""A session keeps its number of slots when workers join or leave, so results keep their bits."""

import threading

import gt
import pytest
from processes import cluster, embedded_only, one_engine_only, unsharded_only
from training import SHARDED, Training, start_worker, undisturbed

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]


@pytest.fixture(autouse=True)
def _sharded():
    gt.register_config("sharded", gt.SignalConfig(gt.ShardConfig(axis=0)))
    yield
    gt.get_config().clear()


def test_a_replacement_that_joins_before_or_after_the_death_changes_no_bit():
    steps = 900
    expected = undisturbed(SHARDED, 2, steps)
    with cluster(2) as (address, processes):
        training = Training(SHARDED, address, steps)
        training.wait_for(200)
        processes.append(start_worker(address, "spare"))
        training.wait_for(400)
        processes[1].kill()
        processes.append(start_worker(address, "other"))
        training.wait_for(600)
        processes[2].kill()
        assert training.end() == expected
    hints = [line for line in training.errors if "gt.rescale" in line]
    assert len(hints) == 1, training.errors


def test_a_given_number_of_slots_does_not_depend_on_workers():
    sums = []
    for workers in (1, 2):
        with cluster(workers) as (address, _), gt.Session(address, slots=3):
            gt.manual_seed(0)
            with gt.signal.context("sharded"):
                x = gt.randn(1000, 7)
                sums.append(x.sum(0).tolist())
            assert len(gt.debug.placement(x)[0].workers) == 3
    assert sums[0] == sums[1]


def test_rescale_changes_the_number_of_slots_and_keeps_tensors():
    with cluster(2) as (address, _), gt.Session(address) as session:
        with gt.signal.context("sharded"):
            x = gt.arange(12.0)
        gt.rescale(1)
        with gt.signal.context("sharded"):
            y = x * 2
        session.rescale(2)
        with gt.signal.context("sharded"):
            assert (x + y).tolist() == [3.0 * value for value in range(12)]
        with pytest.raises(ValueError, match="1 to 4096 slots, 0 given"):
            gt.rescale(0)
        with pytest.raises(TypeError, match="neither slots nor elastic"):
            gt.rescale()


def test_a_session_waits_for_announced_workers():
    with cluster(1, "--workers", "2") as (address, processes):
        later = threading.Timer(0.5, lambda: processes.append(start_worker(address, "late")))
        later.start()
        with gt.Session(address), gt.signal.context("sharded"):
            x = gt.ones(12)
            x.sum().item()
            workers = gt.debug.placement(x)[0].workers
        later.join()
    assert len(workers) == 2


def test_a_file_may_set_the_number_of_slots(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("slots: 2\nelastic: false\nsharded: {shard: {axis: 0}}\n")
    config = gt.config.Config()
    config.load(path)
    assert (config.slots, config.elastic, list(config.signals)) == (2, False, ["sharded"])
    path.write_text("slots: many\n")
    with pytest.raises(ValueError, match="'slots' is 'many', expected a number of slots"):
        config.load(path)


def test_slots_move_to_workers_with_the_same_engine_or_the_session_is_warned():
    with cluster(2) as (address, processes):
        training = Training(SHARDED, address, 2500)
        training.wait_for(100)
        processes.append(start_worker(address, "other", "--backend", "numpy"))
        training.wait_for(200)
        processes[2].kill()
        training.wait_for(400)
        assert not any("last bits" in line for line in training.errors), training.errors
        with gt.Session(address):
            slots = [session["slots"] for session in gt.status().sessions]
        assert ["w0", "w0"] in slots
        processes[1].kill()
        training.end()
    warnings = [line for line in training.errors if "last bits" in line]
    assert len(warnings) == 2, training.errors
    assert "slot 0 is on the worker 'other' now, which computes with numpy" in warnings[0]
    assert "not native" in warnings[0]
