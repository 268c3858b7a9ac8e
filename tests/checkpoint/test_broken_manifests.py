"""Tests that invalid manifests raise a CheckpointError before values are read."""

import json
import os
import zlib

import gt
import pytest
from gt.checkpoint import CheckpointError, Manager


def rewritten(folder, change):
    """Change a manifest, with a valid checksum."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text().rpartition("\n")[0])
    manifest = change(manifest) or manifest
    text = json.dumps(manifest)
    path.write_text(f"{text}\ncrc32 {zlib.crc32(text.encode()):08x}")


def of_tensor(**entries):
    return lambda manifest: manifest["tensors"]["x"].update(entries)


def of_part(**entries):
    return lambda manifest: manifest["tensors"]["x"]["parts"][0].update(entries)


def without(key):
    return lambda manifest: manifest.pop(key) and None


def two_parts(first, second):
    """Return a change that splits the tensor into two (start, end) parts along the first axis."""

    def change(manifest):
        tensor = manifest["tensors"]["x"]
        part = tensor["parts"][0]
        tensor["parts"] = [
            {**part, "starts": [start, 0], "shape": [end - start, 3], "bytes": (end - start) * 12}
            for start, end in (first, second)
        ]

    return change


@pytest.fixture
def folder(tmp_path):
    with gt.Session(workers=1):
        gt.checkpoint.save(tmp_path / "x", {"x": gt.ones(4, 3)}).wait()
    return tmp_path / "x"


HUGE = {"shape": [1 << 40, 3], "starts": [0, 0], "bytes": 12 << 40}


def huge(manifest):
    of_tensor(shape=HUGE["shape"])(manifest)
    of_part(**HUGE)(manifest)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without("tensors"), "the manifest has no tensors"),
        (without("structure"), "the manifest has no structure"),
        (without("step"), "the manifest has no step"),
        (without("metadata"), "the manifest has no metadata"),
        (lambda manifest: [1], "is broken: TypeError"),
        (lambda manifest: manifest.update(step="1"), "step of the manifest is '1', expected a int"),
        (lambda manifest: manifest.update(tensors=[]), "tensors of the manifest is"),
        (lambda manifest: manifest["tensors"].update(x=3), "tensor 'x' has no shape"),
        (of_tensor(dtype="float7"), "dtype of tensor 'x': unknown dtype"),
        (of_tensor(dtype=3), "dtype of tensor 'x' is 3, expected a str"),
        (of_tensor(shape=[-4, 3]), "shape of tensor 'x' is .* expected integers of 0 or more"),
        (of_tensor(shape=[4, 3.0]), "shape of tensor 'x' is"),
        (of_tensor(shape=[1 << 40, 1 << 40]), "tensor 'x' of shape .* would have"),
        (of_tensor(shape=[4, 4]), "have 12 of its 16 elements"),
        (of_tensor(parts=[]), "have 0 of its 12 elements"),
        (of_tensor(parts=[3]), "a part of tensor 'x' has no file"),
        (of_part(offset=-8), "offset of a part of tensor 'x' is -8, expected 0 or more"),
        (of_part(offset=1 << 64), "offset of a part"),
        (of_part(offset=True), "offset of a part"),
        (of_part(starts=[-1, 0]), "starts of a part"),
        (of_part(starts=[1, 0]), "is not inside of shape"),
        (of_part(starts=[0]), "is not inside of shape"),
        (of_part(bytes=3), "has 3 bytes, expected 48"),
        (of_part(crc32=None), "crc32 of a part"),
        (of_part(file=None), "file of a part"),
        (of_part(file="../x/manifest.json"), "outside of the checkpoint's folder"),
        (of_part(file="values/../../secret"), "outside of the checkpoint's folder"),
        (of_part(file="/etc/passwd"), "outside of the checkpoint's folder"),
        (of_part(file=""), "outside of the checkpoint's folder"),
        (of_part(file="link/x"), "outside of the checkpoint's folder"),
        (two_parts((0, 2), (1, 3)), "overlap"),
        (two_parts((0, 1), (2, 4)), "have 9 of its 12 elements"),
        (huge, "x.* is truncated|x.* cannot be read"),
        (lambda manifest: manifest.update(structure="{}"), "its structure is broken"),
        (lambda manifest: manifest.update(structure="["), "its structure is broken"),
        (
            lambda manifest: manifest.update(structure='{"is": "tensor", "name": "y"}'),
            "its structure is broken: KeyError",
        ),
        (
            lambda manifest: manifest.update(
                structure='{"is": "tensor", "name": "x", "complex128": true}'
            ),
            "structure is broken|cannot be",
        ),
    ],
)
@pytest.mark.parametrize("verify", [True, False])
def test_what_cannot_be_is_told(folder, change, told, verify):
    os.symlink("/etc", folder / "link")
    rewritten(folder, change)
    with pytest.raises(CheckpointError, match=told):
        gt.checkpoint.load(folder, verify=verify)


def test_parts_that_tile_a_tensor_are_one(folder):
    rewritten(folder, two_parts((2, 4), (0, 2)))
    assert gt.checkpoint.load(folder, verify=False).state["x"].shape == (4, 3)


def test_a_manager_takes_the_one_before(tmp_path):
    manager = Manager(tmp_path, model=gt.nn.Linear(2, 2))
    for step in (1, 2, 3):
        manager.save(step).wait()
    manager.wait()
    rewritten(tmp_path / "step-000000003", without("tensors"))
    rewritten(tmp_path / "step-000000002", lambda manifest: manifest.update(structure="{}"))
    with pytest.warns(UserWarning, match="trying the previous checkpoint") as warned:
        assert manager.restore_or_initialize() == 1
    assert len(warned) == 2
