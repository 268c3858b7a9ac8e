"""Tests that overwriting a checkpoint leaves the old one or the new one, never none or a mix."""

import os
import random
import signal
import time

import gt
import pytest
from gt.checkpoint import CheckpointError, Manager
from gt.checkpoint.manifest import write_manifest
from gt.convert import convert


def save_what_fails(folder):
    """Save values whose computation fails."""
    saving = gt.checkpoint.save(
        folder, {"x": gt.ones(3)[gt.tensor([7], dtype=gt.int64)], "y": gt.zeros(2)}
    )
    with pytest.raises(CheckpointError, match="was not written"):
        saving.wait()


def files(folder):
    """Return the paths of all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_cannot_be_saved_leaves_what_was_there(tmp_path):
    gt.checkpoint.save(tmp_path / "x", {"x": gt.ones(3)}, step=1).wait()
    before = files(tmp_path)
    save_what_fails(tmp_path / "x")
    loaded = gt.checkpoint.load(tmp_path / "x")
    assert loaded.step == 1 and loaded.state["x"].tolist() == [1, 1, 1]
    assert len(files(tmp_path)) >= len(before) and set(before) <= set(files(tmp_path))


def test_a_manifest_that_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    gt.checkpoint.save(tmp_path / "x", {"x": gt.ones(3)}, step=1).wait()
    before = files(tmp_path)

    def full(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        saving = gt.checkpoint.save(tmp_path / "x", {"x": gt.zeros(3)}, step=2)
        with pytest.raises(CheckpointError, match="No space left"):
            saving.wait()
    assert files(tmp_path) == before and gt.checkpoint.load(tmp_path / "x").step == 1


def test_what_was_replaced_is_removed_and_what_is_not_ours_stays(tmp_path):
    folder = tmp_path / "x"
    gt.checkpoint.save(folder, {"x": gt.ones(3)}).wait()
    count = len(files(folder))
    (folder / "values-00000.safetensors").write_text("of an earlier version")
    (folder / "values-0123456789abcdef").mkdir()
    (folder / "values-mine").write_text("kept")
    gt.checkpoint.save(folder, {"x": gt.zeros(3)}).wait()
    assert len(files(folder)) == count + 1 and (folder / "values-mine").exists()
    assert not (folder / "values-0123456789abcdef").exists()
    assert gt.checkpoint.load(folder).state["x"].tolist() == [0, 0, 0]


def test_files_directly_in_the_folder_are_loaded(tmp_path):
    parts = gt._gt.write_values(str(tmp_path), [gt.ones(3)])
    (_, file, offset, starts, shape, length, checksum) = parts[0]
    part = {"file": file, "offset": offset, "starts": list(starts), "shape": list(shape)}
    part |= {"bytes": length, "crc32": checksum}
    tensors = {"tensor": {"dtype": "float32", "shape": [3], "parts": [part]}}
    structure = '{"is": "tensor", "name": "tensor"}'
    write_manifest(str(tmp_path), structure, tensors, step=4, metadata=None)
    loaded = gt.checkpoint.load(tmp_path)
    assert loaded.step == 4 and loaded.state.tolist() == [1, 1, 1]


def test_a_step_of_a_manager_that_cannot_be_saved_again_stays(tmp_path):
    model = gt.nn.Linear(2, 2)
    manager = Manager(tmp_path, model=model)
    manager.save(1).wait()
    with gt.no_grad():
        model.weight += gt.ones(2, 2)[gt.tensor([0, 5], dtype=gt.int64)]
    manager.save(1, force=True)
    with pytest.raises(CheckpointError, match="was not written"):
        manager.wait()
    assert Manager(tmp_path, model=gt.nn.Linear(2, 2)).restore_or_initialize() == 1


def test_saves_into_one_folder_take_turns(tmp_path):
    for _ in range(8):
        states = [{"x": gt.full((2000,), float(value))} for value in range(4)]
        savings = [gt.checkpoint.save(tmp_path / "x", state, step=7) for state in states]
        for saving in savings:
            saving.wait()
        assert set(gt.checkpoint.load(tmp_path / "x").state["x"].tolist()) == {3.0}
    assert len([name for name in os.listdir(tmp_path / "x") if name.startswith("values")]) == 1


def test_kills_while_a_folder_is_saved_again_leave_one_or_the_other(tmp_path):
    folder, chance, last = tmp_path / "x", random.Random(0), 0
    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                with gt.Session(workers=1):
                    save_again_and_again(folder, last)
            finally:
                os._exit(1)
        time.sleep(chance.uniform(0.02, 0.12))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if last or (folder / "manifest.json").exists():
            loaded = gt.checkpoint.load(folder)
            values = loaded.state["x"]
            assert loaded.step >= last
            assert values.min().item() == values.max().item() == loaded.step
            last = loaded.step
    assert last > 5, "checkpoints were made"
    gt.checkpoint.save(folder, {"x": gt.ones(2)}).wait()
    assert len(list(folder.iterdir())) == 2, "nothing of those that were killed is left"


def save_again_and_again(folder, step):
    while True:
        step += 1
        gt.checkpoint.save(folder, {"x": gt.full((2000,), float(step))}, step=step).wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system can be mounted by root only")
def test_a_full_disk_leaves_what_was_in_the_folder(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=600k tmpfs {disk} 2>/dev/null") != 0:
        pytest.skip("no file system can be mounted here")
    try:
        gt.checkpoint.save(disk / "x", {"x": gt.ones(300, 300)}, step=1).wait()
        with pytest.raises(CheckpointError, match="No space left"):
            gt.checkpoint.save(disk / "x", {"x": gt.zeros(300, 300)}, step=2).wait()
        assert gt.checkpoint.load(disk / "x").step == 1
    finally:
        os.system(f"umount {disk}")


def test_conversions_know_the_folders_of_values(tmp_path):
    gt.checkpoint.save(tmp_path / "x", gt.nn.Linear(3, 2).state_dict()).wait()
    report = convert(tmp_path / "x", tmp_path / "hf")
    assert report.fits and not report.left and not report.carried
    convert(tmp_path / "hf", tmp_path / "x", force=True)
    assert files(tmp_path / "x") == ["manifest.json", "values-00001.safetensors"]
    assert sorted(os.listdir(tmp_path / "x")) == files(tmp_path / "x")
    gt.checkpoint.save(tmp_path / "x", {"x": gt.ones(2)}).wait()
    assert gt.checkpoint.load(tmp_path / "x").state["x"].tolist() == [1, 1]
    assert not (tmp_path / "x" / "values-00001.safetensors").exists()
