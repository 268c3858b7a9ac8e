"""Tests of the checkpoints that a manager keeps, and of its warnings about unexpected folders."""

import os
import warnings

import gt
import numpy as np
import pytest
from gt.checkpoint import CheckpointError, Manager


def model():
    return gt.nn.Linear(2, 2)


def filled(folder, *steps):
    """Write checkpoints of given steps with another manager."""
    manager = Manager(folder, keep=None, model=model())
    for step in steps:
        manager.save(step)
    manager.wait()


def break_it(folder, step):
    """Make a checkpoint's manifest unreadable."""
    (folder / f"step-{step:09}" / "manifest.json").write_text("broken")


def test_what_is_written_last_is_kept(tmp_path):
    filled(tmp_path, 100, 200, 300)
    manager = Manager(tmp_path, keep=3, model=model())
    with pytest.warns(UserWarning, match="step 10 is saved, but .* has step 300") as warned:
        manager.save(10)
    manager.save(20)
    manager.wait()
    assert len(warned) == 1 and manager.steps() == [10, 20, 300]
    manager.save(30).wait()
    manager.save(40).wait()
    manager.wait()
    assert manager.steps() == [20, 30, 40]


def test_a_run_that_goes_on_keeps_its_newest(tmp_path):
    filled(tmp_path, 1, 2, 3)
    manager = Manager(tmp_path, keep=2, model=model())
    assert manager.restore_or_initialize() == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager.save(4)
        manager.save(4, force=True)
        manager.wait()
    assert manager.steps() == [3, 4]


def test_a_broken_checkpoint_does_not_displace_new_ones(tmp_path):
    filled(tmp_path, 300)
    break_it(tmp_path, 300)
    manager = Manager(tmp_path, keep=1, model=model())
    with pytest.warns(UserWarning, match="trying the previous checkpoint"):
        assert manager.restore_or_initialize() == 0
    for step in (1, 2, 3):
        manager.save(step)
        manager.wait()
        assert manager.steps() == [step]
    assert sorted(os.listdir(tmp_path)) == ["step-000000003", "step-000000300.broken"]
    assert Manager(tmp_path, model=model()).restore_or_initialize() == 3


def test_a_broken_step_that_is_written_again_is_whole(tmp_path):
    filled(tmp_path, 5)
    break_it(tmp_path, 5)
    manager = Manager(tmp_path, keep=1, model=model())
    with pytest.warns(UserWarning, match="trying the previous checkpoint"):
        assert manager.restore_or_initialize() == 0
    manager.save(5)
    manager.wait()
    assert os.listdir(tmp_path) == ["step-000000005"]


def test_steps_are_whole_numbers(tmp_path):
    manager = Manager(tmp_path, model=model())
    with pytest.raises(ValueError, match="step is -1, expected 0 or more"):
        manager.save(-1)
    with pytest.raises(TypeError, match="step is 2.0, a float, expected an integer"):
        manager.save(2.0)
    with pytest.raises(TypeError, match="step is '3', a str"):
        gt.checkpoint.save(tmp_path / "x", {}, step="3")
    manager.save(np.int64(7))
    manager.wait()
    assert manager.steps() == [7] and manager.restore_or_initialize() == 7
    assert type(gt.checkpoint.load(manager.path(7)).step) is int


def test_metadata_are_those_of_this_moment_and_json(tmp_path):
    metadata = {"losses": [1.5]}
    saving = gt.checkpoint.save(tmp_path / "x", {}, metadata=metadata)
    metadata["losses"].append(gt.ones(1))
    saving.wait()
    assert gt.checkpoint.load(tmp_path / "x").metadata == {"losses": [1.5]}
    message = r"metadata\['losses'\]\[1\] is a Tensor, expected a JSON value"
    with pytest.raises(TypeError, match=message):
        gt.checkpoint.save(tmp_path / "x", {}, metadata=metadata)
    with pytest.raises(TypeError, match="metadata is a set, expected"):
        gt.checkpoint.save(tmp_path / "x", {}, metadata={1})
    metadata["losses"] = metadata
    with pytest.raises(TypeError, match=r"metadata\['losses'\] contains itself"):
        gt.checkpoint.save(tmp_path / "x", {}, metadata=metadata)


def test_objects_that_are_not_given_are_told(tmp_path):
    Manager(tmp_path, model=model(), ema=model(), other=model()).save(1).wait()
    with pytest.warns(UserWarning, match="also has ema, other, for which no object was given"):
        assert Manager(tmp_path, model=model()).restore_or_initialize() == 1


def test_a_checkpoint_that_no_manager_wrote(tmp_path):
    manager = Manager(tmp_path, model=model())
    gt.checkpoint.save(manager.path(1), {"weight": gt.ones(2)}).wait()
    with pytest.raises(CheckpointError, match="was not written by a Manager"):
        manager.restore_or_initialize()
