"""Tests that files of `torch.save` are read without PyTorch, and nothing in them is executed."""

import io
import os
import pickle
import zipfile
from collections import OrderedDict, defaultdict

import gt
import numpy as np
import pytest
from gt.formats import pytorch
from gt.formats.pickled import Machine

torch = pytest.importorskip("torch")


def loaded(value):
    """Return a value saved by PyTorch and loaded by GT."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return gt.load(buffer)


def same(ours, theirs):
    """Assert that a structure of GT tensors equals one of PyTorch tensors."""
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
    """An object that executes a command when it is unpickled."""

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
        defaultdict(os.getpid),
        {"deep": [Evil((print, ("x",)))]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_is_executed(value):
    with pytest.raises(ValueError, match="hint: nothing in a file is executed"):
        loaded({"x": value})
    assert not os.path.exists("/tmp/gt-evil")


def archive(program, storage=b"\0" * 16, compression=zipfile.ZIP_STORED):
    """Return an archive in PyTorch's format with a given pickle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        file.writestr("x/data.pkl", program)
        file.writestr("x/data/0", storage)
        file.writestr("x/byteorder", "little")
    buffer.seek(0)
    return buffer


def tensor_program(offset=0, size=(4,), stride=(1,), count=4, metadata=None, dtype=None):
    """Return a pickle of one tensor; if `dtype` is given, its storage is untyped."""

    class Storage:
        pass

    class Tensor:
        def __reduce__(self):
            given = (Storage(), offset, size, stride, False, OrderedDict())
            if dtype is not None:
                return torch._utils._rebuild_tensor_v3, (*given, dtype, metadata)
            return torch._utils._rebuild_tensor_v2, (*given, metadata)

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            if isinstance(value, Storage):
                kind = torch.FloatStorage if dtype is None else torch.UntypedStorage
                return ("storage", kind, "0", "cpu", count)
            return None

    buffer = io.BytesIO()
    Pickler(buffer, protocol=2).dump(Tensor())
    return buffer.getvalue()


def test_a_tensor_of_ones_own():
    assert gt.load(archive(tensor_program())).tolist() == [0, 0, 0, 0]


def test_a_tensor_over_bytes(tmp_path):
    program = tensor_program(1, (3,), (2,), 12, dtype=torch.int16)
    stored = np.arange(6, dtype=np.int16).tobytes()
    assert gt.load(archive(program, stored)).tolist() == [1, 3, 5]
    path = tmp_path / "x.bin"
    path.write_bytes(archive(b"\x80\x02}X\x01\x00\x00\x00a" + program[2:-1] + b"s.", stored).read())
    place = pytorch.places(str(path))["a"]
    assert place.dtype == "int16" and pytorch.read_place(str(path), place).tolist() == [1, 3, 5]


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


def test_conjugated_and_negated_views(tmp_path):
    value = torch.tensor([1 + 2j, 3 - 4j])
    same(loaded({"plain": value, "conj": value.conj()}), {"plain": value, "conj": value.conj()})
    negated = value.conj().imag
    assert negated.is_neg()
    same(loaded({"x": negated}), {"x": negated})
    torch.save({"x": value.conj(), "y": value}, tmp_path / "x.bin")
    places = pytorch.places(str(tmp_path / "x.bin"))
    read = {name: pytorch.read_place(str(tmp_path / "x.bin"), p) for name, p in places.items()}
    same(read, {"x": value.conj(), "y": value})


def test_other_properties_of_tensors_are_told():
    program = tensor_program(metadata={"conj": False, "shiny": True})
    with pytest.raises(ValueError, match="a tensor with the property 'shiny'"):
        gt.load(archive(program))


TWICE = b")" + b"2\x86" * 60  # Nested tuples (x, x), 60 levels deep: 2^60 items in all.


@pytest.mark.parametrize(
    "program",
    [
        b"}" + TWICE + b"K\x01s.",
        b"}(" + TWICE + b"K\x01u.",
        b"(" + TWICE + b"K\x01d.",
        b"\x8f(" + TWICE + b"\x90.",
        b"(" + TWICE + b"\x91.",
        b"cbuiltins\nset\n](" + TWICE + b"e\x85R.",
        b"ccollections\nOrderedDict\n](" + TWICE + b"K\x01\x86e\x85R.",
        TWICE + b")R.",
        TWICE + b"Q.",
        TWICE + TWICE + b"\x93.",
        b"}(K\x00" + b"2" * 200 + (b"tq\x00(h\x00" + b"2" * 200) * 6 + b"tK\x01s.",
        b"cbuiltins\nset\ncbuiltins\nrange\nJ\xff\xff\xff\x7f\x85R\x85R.",
        b"cbuiltins\nset\ncbuiltins\nrange\nJ\xff\xff\xff\x7f\x85RR.",
        b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
        b"cbuiltins\nrange\n\x8a\x09" + b"\xff" * 8 + b"\x00\x85R.",
        b"cbuiltins\nlist\n)R.",
    ],
    ids=range(16),
)
def test_no_pickle_takes_for_ever(program):
    with pytest.raises(ValueError):  # noqa: PT011
        gt.load(archive(b"\x80\x04" + program))


def test_plain_values_of_all_protocols():
    value = [bytearray(b"ab"), bytearray(), {1, (2, 3)}, frozenset([4]), range(3), set()]
    value += [OrderedDict({(1, ("a", None)): 2}), defaultdict(list, {1: [2]}), defaultdict(None)]
    for protocol in range(6):
        read = gt.load(archive(pickle.dumps(value, protocol)))
        assert read == value
        assert [type(item) for item in read] == [type(item) for item in value]
        assert read[-2].default_factory is list


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.ones(2).to(torch.float8_e4m3fn), "dtype torch.float8_e4m3fn, which GT"),
        (lambda: torch.ones(2).to(torch.uint16), "dtype torch.uint16, which GT"),
        (lambda: torch.eye(2).to_sparse(), "a sparse tensor.*\n.*to_dense"),
        (lambda: torch.ones(2, device="meta"), "device 'meta'"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "a quantized"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_that_are_not_read_are_told(make, message):
    with pytest.raises(ValueError, match=message):
        loaded({"x": make()})


def test_tensors_with_attributes(tmp_path):
    tensor, parameter = torch.arange(4.0)[1:], torch.nn.Parameter(torch.ones(2))
    tensor.note = parameter.note = "x"
    value = {"tensor": tensor, "parameter": parameter, "buffer": torch.nn.Buffer(torch.ones(2))}
    same(loaded(value), value)
    torch.save({"tensor": tensor}, tmp_path / "x.bin")
    place = pytorch.places(str(tmp_path / "x.bin"))["tensor"]
    assert pytorch.read_place(str(tmp_path / "x.bin"), place).tolist() == [1, 2, 3]


def test_a_file_to_convert_holds_a_dict_of_tensors(tmp_path):
    path = str(tmp_path / "x.bin")
    for value, message in [
        (torch.ones(1), "holds a tensor, expected a dict of tensors by name"),
        ({"a": {"b": torch.ones(1)}}, "holds a dict at 'a', expected a dict"),
        ({3: torch.ones(1)}, "holds a tensor at 3, expected a dict"),
    ]:
        torch.save(value, path)
        with pytest.raises(ValueError, match=message):
            pytorch.places(path)
