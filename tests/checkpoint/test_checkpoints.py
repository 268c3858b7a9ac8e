"""Tests that checkpoints are complete or absent, for any number of workers and any sharding."""

import json
import math
import os
import random
import signal
import time
import warnings

import gt
import numpy as np
import pytest
from gt.checkpoint import CheckpointError, Manager
from processes import cluster


def small_run():
    """Return a model and its optimizer after one step."""
    model = gt.nn.Sequential(gt.nn.Linear(3, 4), gt.nn.LayerNorm(4), gt.nn.Linear(4, 2))
    optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
    take_step(model, optimizer)
    return model, optimizer


def take_step(model, optimizer):
    """Take a step on random data and return the loss."""
    optimizer.zero_grad()
    loss = (model(gt.randn(8, 3)) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_a_run_goes_on_as_if_it_had_not_stopped(tmp_path):
    model, optimizer = small_run()
    with Manager(tmp_path, keep=2, every=2, model=model, optimizer=optimizer) as manager:
        assert manager.restore_or_initialize() == 0
        for step in range(4):
            take_step(model, optimizer)
            manager.save(step + 1, metadata={"loss": 0.5})
        losses = [take_step(model, optimizer) for _ in range(3)]
    assert manager.steps() == [2, 4]
    gt.manual_seed(99)
    model, optimizer = small_run()
    manager = Manager(tmp_path, model=model, optimizer=optimizer)
    assert manager.restore_or_initialize() == 4
    assert manager.metadata == {"loss": 0.5}
    assert [take_step(model, optimizer) for _ in range(3)] == losses


def test_what_is_saved_is_the_state_of_that_moment(tmp_path):
    weight = gt.nn.Parameter(gt.zeros(1000))
    saving = gt.checkpoint.save(tmp_path / "x", {"weight": weight})
    with gt.no_grad():
        for _ in range(10):
            weight += 1
    saving.wait()
    loaded = gt.checkpoint.load(tmp_path / "x")
    assert loaded.state["weight"].sum().item() == 0 and loaded.step == 0


def test_dtypes_and_structures(tmp_path):
    state = {
        "kinds": [
            gt.tensor([[0, 1], [1, 0]]).to(dtype)
            for dtype in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float64".split()
        ],
        "complex": (gt.tensor([1 + 2j]), gt.tensor([1 + 2j]).to(gt.complex128)),
        "empty": gt.zeros(0, 3),
        "scalar": gt.tensor(3.5),
        "others": [1, None, "text", b"bytes", {"a": 2.5}],
    }
    gt.checkpoint.save(tmp_path / "x", state, step=7, metadata={"note": "y"}).wait()
    loaded = gt.checkpoint.load(tmp_path / "x")
    assert loaded.step == 7 and loaded.metadata == {"note": "y"}
    assert loaded.state["others"] == state["others"]
    for mine, theirs in zip(
        [*loaded.state["kinds"], *loaded.state["complex"], loaded.state["empty"]],
        [*state["kinds"], *state["complex"], state["empty"]],
        strict=True,
    ):
        assert mine.dtype == theirs.dtype and mine.tolist() == theirs.tolist()
    assert loaded.state["scalar"].item() == 3.5


@pytest.mark.parametrize("axis", [0, 1])
def test_other_numbers_of_workers_and_shardings(tmp_path, axis):
    value = np.arange(7 * 10, dtype=np.float32).reshape(7, 10)
    gt.register_config("cut", gt.SignalConfig(gt.ShardConfig(axis=axis)))
    with gt.Session(workers=3), gt.signal.context("cut"):
        cut = gt.tensor(value) * 2
        partial = cut.sum(axis)
        gt.checkpoint.save(tmp_path / "x", {"cut": cut, "sum": partial}).wait()
    assert len(list((tmp_path / "x").rglob("*.safetensors"))) >= 2
    for workers, other in [(1, 0), (2, 1 - axis), (4, axis)]:
        gt.register_config("other", gt.SignalConfig(gt.ShardConfig(axis=other)))
        with gt.Session(workers=workers), gt.signal.context("other"):
            state = gt.checkpoint.load(tmp_path / "x").state
            np.testing.assert_array_equal((state["cut"] / 2).numpy(), value)
            np.testing.assert_allclose(state["sum"].numpy(), value.sum(axis) * 2)


@pytest.mark.parametrize("allowed", [True, False])
def test_workers_of_a_server_write_and_read(tmp_path, allowed):
    value = np.arange(12 * 50, dtype=np.float32).reshape(12, 50)
    gt.register_config("cut", gt.SignalConfig(gt.ShardConfig(axis=0)))
    gt.register_config("columns", gt.SignalConfig(gt.ShardConfig(axis=1)))
    root = tmp_path / ("data" if allowed else "elsewhere")
    (tmp_path / "data").mkdir()
    options = ["--data-root", str(tmp_path / "data")]
    with cluster(2, *options, worker_options=options) as (address, _):
        with gt.Session(address):
            with gt.signal.context("cut"):
                cut = gt.tensor(value) + 1
            gt.checkpoint.save(root / "run" / "x", {"cut": cut}).wait()
        files = sorted((root / "run" / "x").rglob("*.safetensors"))
        assert len(files) == (2 if allowed else 1), files
        for signal_name in ("cut", "columns"):
            with gt.Session(address), gt.signal.context(signal_name):
                loaded = gt.checkpoint.load(root / "run" / "x").state["cut"]
                np.testing.assert_array_equal((loaded - 1).numpy(), value)


@pytest.mark.parametrize("allowed", [True, False])
def test_workers_read_their_part_of_a_safetensors_file(tmp_path, allowed):
    value = np.arange(12 * 50, dtype=np.float32).reshape(12, 50)
    gt.register_config("columns", gt.SignalConfig(gt.ShardConfig(axis=1)))
    root = tmp_path / ("data" if allowed else "elsewhere")
    (tmp_path / "data").mkdir()
    root.mkdir(exist_ok=True)
    path = root / "x.safetensors"
    gt.safetensors.save_file({"first": gt.ones(3), "second": gt.tensor(value)}, path)
    options = ["--data-root", str(tmp_path / "data")]
    with cluster(2, *options, worker_options=options) as (address, _):
        with gt.Session(address), gt.signal.context("columns"):
            loaded = gt.safetensors.load_file(path)
            with gt.safetensors.safe_open(path) as file:
                rows = file.get_slice("second")[2:5]
                assert file.get_tensor("first").tolist() == [1, 1, 1]
                with pytest.raises(KeyError, match="third"):
                    file.get_tensor("third")
            np.testing.assert_array_equal((loaded["second"] * 2).numpy(), value * 2)
            np.testing.assert_array_equal(rows.numpy(), value[2:5])


def test_values_of_a_file_do_not_come_through_the_client(tmp_path):
    path = tmp_path / "x.safetensors"
    gt.safetensors.save_file({"x": gt.ones(3)}, path)
    gt.save({"x": gt.ones(3)}, tmp_path / "x.gt")
    parts = tmp_path / "parts"
    gt.safetensors.save_sharded({"x": gt.ones(3), "y": gt.ones(3)}, parts, max_shard_bytes=12)
    reads = [
        lambda: gt.safetensors.load_file(path),
        lambda: gt.safetensors.load_file(parts),
        lambda: gt.load(path),
        lambda: gt.load(tmp_path / "x.gt"),
        lambda: gt.load(parts),
    ]
    # Only the server has the data root, so the worker refuses to read the file.
    with cluster(1, "--data-root", str(tmp_path)) as (address, _):
        for read in reads:
            with gt.Session(address), pytest.raises(gt.WorkerError, match="load"):
                read()["x"].tolist()


def test_no_way_leads_out_of_a_data_root(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "secret").mkdir()
    os.symlink(tmp_path / "secret", tmp_path / "data" / "link")
    (tmp_path / "secret" / "x").write_bytes(b"secret secret!!!")
    options = ["--data-root", str(tmp_path / "data")]
    with cluster(1, *options, worker_options=options) as (address, _):
        with gt.Session(address):
            for path in ("data/link/x", "secret/x", "data/../secret/x", "data/nothing"):
                part = (str(tmp_path / path), 0, [0], [4])
                stolen = gt._gt.load_values("float32", [4], [part])
                with pytest.raises(gt.WorkerError, match="load"):
                    stolen.tolist()
            for folder in ("data/link", "secret", "data/../secret"):
                saving = gt._gt.save_values(str(tmp_path / folder), [gt.ones(2)])
                with pytest.raises(gt.WorkerError, match="save"):
                    saving.wait()
            assert gt.ones(3).sum().item() == 3
    assert os.listdir(tmp_path / "secret") == ["x"]


def values_of(checkpoint):
    """Return the first file of values of a checkpoint."""
    return sorted(checkpoint.rglob("values-*.safetensors"))[0]


def test_broken_checkpoints_are_told_and_the_one_before_is_taken(tmp_path):
    model = gt.nn.Linear(100, 100)
    manager = Manager(tmp_path, keep=None, model=model)
    for step in (1, 2, 3, 4):
        manager.save(step)
    manager.wait()
    values = values_of(tmp_path / "step-000000004")
    raw = bytearray(values.read_bytes())
    raw[-5] ^= 1
    values.write_bytes(raw)
    with pytest.raises(CheckpointError, match="their checksum differs"):
        gt.checkpoint.verify(tmp_path / "step-000000004")
    values_of(tmp_path / "step-000000003").write_bytes(b"short")
    manifest = tmp_path / "step-000000002" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"step": 2', '"step": 9'))
    with pytest.warns(UserWarning, match="trying the previous checkpoint") as warned:
        assert Manager(tmp_path, model=gt.nn.Linear(100, 100)).restore_or_initialize() == 1
    assert len(warned) == 3
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        gt.checkpoint.load(tmp_path)


def test_what_does_not_fit_is_told(tmp_path):
    Manager(tmp_path, model=gt.nn.Linear(2, 2)).save(1).wait()
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        Manager(tmp_path, model=gt.nn.Linear(3, 2)).restore_or_initialize()
    with pytest.raises(CheckpointError, match="has no optimizer; it has model"):
        Manager(tmp_path, optimizer=gt.nn.Linear(2, 2)).restore_or_initialize()
    with pytest.raises(TypeError, match="expected something with state_dict"):
        Manager(tmp_path, model=3)
    with pytest.raises(TypeError, match="JSON"):
        Manager(tmp_path, model=gt.nn.Linear(2, 2)).save(2, metadata={"a": gt.ones(1)})
    for options in ({"keep": 0}, {"every": 0}):
        with pytest.raises(ValueError, match="expected 1 or more"):
            Manager(tmp_path, **options)


def test_a_save_that_fails_is_told_and_training_goes_on(tmp_path):
    model = gt.nn.Linear(2, 2)
    manager = Manager(tmp_path / "run", model=model)
    manager.save(1)
    manager.wait()
    with gt.no_grad():
        model.weight += gt.ones(2, 2)[gt.tensor([0, 5], dtype=gt.int64)]  # fails when computed
    manager.save(2)
    with pytest.warns(UserWarning, match="was not written"):
        manager.save(3)
    with pytest.raises(CheckpointError, match="was not written"):
        manager.wait()
    assert manager.steps() == [1]


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    manager = Manager(tmp_path / "file" / "run", model=gt.nn.Linear(2, 2))
    manager.save(1)
    with pytest.warns(UserWarning, match="was not written.*file"):
        manager.save(2)
    with pytest.raises(CheckpointError, match="was not written") as caught:
        manager.wait()
    # The error says why, so no other one is printed before it.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system can be mounted by root only")
def test_a_full_disk_leaves_the_last_checkpoint(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=600k tmpfs {disk} 2>/dev/null") != 0:
        pytest.skip("no file system can be mounted here")
    try:
        model = gt.nn.Linear(300, 300)
        manager = Manager(disk, model=model)
        manager.save(1).wait()
        manager.save(2)
        with pytest.warns(UserWarning, match="No space left"):
            manager.save(3)
        with pytest.raises(CheckpointError, match="No space left"):
            manager.wait()
        assert manager.steps() == [1]
        assert Manager(disk, model=gt.nn.Linear(300, 300)).restore_or_initialize() == 1
    finally:
        os.system(f"umount {disk}")


def saver(folder):
    """Save checkpoints endlessly; all values of a checkpoint are its step."""
    holder = Holder([gt.zeros(1000), gt.zeros(50, 300), gt.zeros(())])
    manager = Manager(folder, keep=2, holder=holder)
    step = manager.restore_or_initialize()
    while True:
        step += 1
        for weight in holder.tensors:
            weight.fill_(float(step))
        manager.save(step)


class Holder:
    """An object with tensors as its state."""

    def __init__(self, tensors):
        self.tensors = tensors

    def state_dict(self):
        return {"tensors": self.tensors}

    def load_state_dict(self, state):
        self.tensors = state["tensors"]


def test_kills_at_any_moment_leave_a_whole_checkpoint(tmp_path):
    chance, last = random.Random(0), 0
    for _ in range(200):
        child = os.fork()
        if child == 0:
            try:
                with gt.Session(workers=1):
                    saver(tmp_path)
            finally:
                os._exit(1)
        time.sleep(chance.uniform(0.0, 0.12))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            holder = Holder([gt.zeros(())])
            step = Manager(tmp_path, keep=2, holder=holder).restore_or_initialize()
        assert step >= last, "the last good one was lost"
        if step:
            assert [t.min().item() for t in holder.tensors] == [step] * 3
            assert [t.max().item() for t in holder.tensors] == [step] * 3
        last = step
    assert last > 50, "checkpoints were made"


def test_the_manifest_is_plain(tmp_path):
    gt.checkpoint.save(tmp_path / "x", {"a": gt.ones(2, 3)}).wait()
    text = (tmp_path / "x" / "manifest.json").read_text().rpartition("\n")[0]
    parts = json.loads(text)["tensors"]["a"]["parts"]
    for part in parts:
        values = gt.safetensors.load_file(tmp_path / "x" / part["file"])
        assert [list(v.shape) for v in values.values()] == [part["shape"]]
    assert sum(math.prod(part["shape"]) for part in parts) == 6
