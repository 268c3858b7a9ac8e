"""Files of `torch.save` are read without PyTorch, and nothing in them is executed."""

import io
import os
import pickle
import zipfile
from collections import OrderedDict, defaultdict

import gt
import numpy as np
import pytest
from gt.formats.pickled import Machine

torch = pytest.importorskip("torch")


def loaded(value):
    """Give what GT reads of what PyTorch has saved."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return gt.load(buffer)


def same(ours, theirs):
    """Compare structures of GT's tensors and PyTorch's."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, gt.Tensor)
        assert str(theirs.dtype) == f"torch.{ours.dtype.name}"
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours.requires_grad == theirs.requires_grad
        np.testing.assert_array_equal(np.array(ours.tolist()), np.array(theirs.tolist()))
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif isinstance(theirs, (torch.dtype, torch.device)):
        assert str(ours) == str(theirs).replace("torch.", "gt.")
    else:
        assert ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize(
    "dtype",
    "bool uint8 int8 int16 int32 int64".split()
    + "float16 bfloat16 float32 float64 complex64 complex128".split(),
)
def test_all_dtypes(dtype):
    value = torch.tensor([[0, 1, 2], [3, 0, 1]]).to(getattr(torch, dtype))
    same(loaded({"x": value, "scalar": value[0, 1]}), {"x": value, "scalar": value[0, 1]})


def test_views_and_shapes():
    base = torch.arange(24.0).reshape(4, 6)
    value = {
        "transposed": base.T,
        "rows": base[1:3],
        "strided": base[:, ::2],
        "expanded": torch.ones(1, 3).expand(1000, 3),
        "empty": torch.zeros(0, 3),
        "flipped": base.flip(0),
    }
    same(loaded(value), value)


def test_states_of_models_and_optimizers():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    value = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "parameter": model[0].weight,
        "others": [torch.Size([1, 2]), torch.float32, torch.device("cpu"), 1 + 2j, b"x", None],
        "text": ("a", 1, 2.5, True, 2**70, -(2**40)),
        "sets": {1, 2},
    }
    ours = loaded(value)
    same(ours, value)
    assert isinstance(ours["parameter"], gt.nn.Parameter)
    assert isinstance(ours["model"], OrderedDict) and ours["model"]._metadata


class Evil:
    """Executes a command where it is unpickled."""

    def __init__(self, call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "value",
    [
        Evil((os.system, ("touch /tmp/gt-evil",))),
        Evil((eval, ("1",))),
        Evil((getattr, ("text", "upper"))),
        torch.nn.Linear(1, 1),
        np.float64(3),
        defaultdict(list),
        {"deep": [Evil((print, ("x",)))]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_is_executed(value):
    with pytest.raises(ValueError, match="hint: nothing of a file is executed"):
        loaded({"x": value})
    assert not os.path.exists("/tmp/gt-evil")


def archive(program, storage=b"\0" * 16, compression=zipfile.ZIP_STORED):
    """Give a file with a pickle of one's own."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        file.writestr("x/data.pkl", program)
        file.writestr("x/data/0", storage)
        file.writestr("x/byteorder", "little")
    buffer.seek(0)
    return buffer


def tensor_program(offset=0, size=(4,), stride=(1,), count=4):
    """Give a pickle of one tensor."""

    class Storage:
        pass

    class Tensor:
        def __reduce__(self):
            function = torch._utils._rebuild_tensor_v2
            return function, (Storage(), offset, size, stride, False, OrderedDict())

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            if isinstance(value, Storage):
                return ("storage", torch.FloatStorage, "0", "cpu", count)
            return None

    buffer = io.BytesIO()
    Pickler(buffer, protocol=2).dump(Tensor())
    return buffer.getvalue()


def test_a_tensor_of_ones_own():
    assert gt.load(archive(tensor_program())).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "file",
    [
        archive(tensor_program(offset=3)),
        archive(tensor_program(offset=-1)),
        archive(tensor_program(size=(2**40,))),
        archive(tensor_program(size=(-1,))),
        archive(tensor_program(stride=(1, 2))),
        archive(tensor_program(stride=(-1,))),
        archive(tensor_program(count=5)),
        archive(tensor_program(), storage=b"\0"),
        archive(b""),
        archive(b"."),
        archive(b"\x80\x02"),
        archive(b"\x80\x02a."),
        archive(b"\x80\x02q\x00."),
        archive(b"\x80\x02h\x07."),
        archive(b"\x80\x02u."),
        archive(b"\x80\x02K\x01K\x02R."),
        archive(b"\x80\x02]}b."),
        archive(b"\x80\x04\x8c\xff."),
        archive(tensor_program(), compression=zipfile.ZIP_DEFLATED),
        io.BytesIO(b"PK\x03\x04 not at all"),
        io.BytesIO(archive(tensor_program()).getvalue()[:100]),
    ],
)
def test_broken_files_are_errors(file):
    with pytest.raises(ValueError):  # noqa: PT011
        gt.load(file)


def test_old_files_are_told(tmp_path):
    torch.save({"a": torch.ones(1)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="a bare pickle"):
        gt.load(tmp_path / "old.pt")


def test_protocols_of_pickles():
    value = {"a": [1, (2, 3.5, "x" * 300), {4}, frozenset([5]), None, True, b"y" * 300, 2**100]}
    for protocol in range(6):
        names = {
            f"{m} {k.__name__}": k for m in ("builtins", "__builtin__") for k in (set, frozenset)
        }
        names["_codecs encode"] = lambda text, encoding: text.encode(encoding)
        machine = Machine(names, lambda _: None, lambda value, state: value)
        assert machine.run(pickle.dumps(value, protocol)) == value
