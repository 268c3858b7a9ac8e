"""Tests of `gt.save`, `gt.load` and `gt.safetensors`: round trips, and errors of broken files."""

import io
import json
import os
import struct
from collections import OrderedDict

import gt
import numpy as np
import pytest
from gt.formats import pytorch


def same(a, b):
    """Assert that two structures are equal: containers, values, dtypes and `requires_grad`."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, gt.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        assert a.tolist() == b.tolist()
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and (a == b).all()
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        assert a == b


DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
#: Functions, because creating a tensor at import would start a session.
STRUCTURES = [
    lambda: gt.ones(2, 3),
    lambda: {"a": gt.ones(2), "b": [1, 2.5, None, True, "text", b"bytes", 1 + 2j]},
    lambda: {3: (gt.zeros(0, 4),)},
    lambda: OrderedDict(x=gt.nn.Parameter(gt.ones(2)), y=gt.ones(1, requires_grad=True)),
    lambda: [gt.Size((2, 3)), {1, 2}, frozenset([3]), gt.float16, gt.device("cuda:1")],
    lambda: [bytearray(b"x"), {}, 3],
    lambda: {"array": np.arange(4, dtype=np.int16), "a": {"b": gt.ones(1)}, "a.b": gt.zeros(1)},
    lambda: {name: gt.tensor([[0, 1], [1, 0]]).to(name) for name in DTYPES.split()},
]


@pytest.mark.parametrize("index", range(len(STRUCTURES)))
def test_what_is_saved_comes_back(tmp_path, index):
    value = STRUCTURES[index]()
    gt.save(value, tmp_path / "file.gt")
    same(gt.load(tmp_path / "file.gt"), value)
    buffer = io.BytesIO()
    gt.save(value, buffer)
    buffer.seek(0)
    same(gt.load(buffer), value)
    assert os.listdir(tmp_path) == ["file.gt"]


def test_a_tensor_that_is_there_twice_is_saved_once(tmp_path):
    shared = gt.ones(1000)
    gt.save({"a": shared, "b": shared}, tmp_path / "file.gt")
    assert os.path.getsize(tmp_path / "file.gt") < 5000


def test_states_of_modules_and_optimizers(tmp_path):
    model = gt.nn.Sequential(gt.nn.Linear(3, 2), gt.nn.LayerNorm(2))
    optimizer = gt.optim.AdamW(model.parameters())
    model(gt.ones(1, 3)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 7}
    gt.save(state, tmp_path / "state.gt")
    again = gt.load(tmp_path / "state.gt", map_location="cpu", weights_only=True)
    same(again, state)
    model.load_state_dict(again["model"])
    names = gt.safetensors.load_file(tmp_path / "state.gt")
    assert "model.0.weight" in names


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": [gt.optim.SGD([gt.nn.Parameter(gt.ones(1))])]}, ["SGD", "'a.0'", "state_dict"]),
        ({"a": {"b": lambda: 1}}, ["function", "'a.b'", "at the top of a module"]),
        ({"a": iter([])}, ["list_iterator", "'a'"]),
        (np.array(["x"]), ["ndarray"]),
    ],
)
def test_what_cannot_be_saved_is_told(tmp_path, value, words):
    with pytest.raises(TypeError) as caught:
        gt.save(value, tmp_path / "file.gt")
    assert all(word in str(caught.value) for word in words), caught.value
    assert os.listdir(tmp_path) == []


def test_npz(tmp_path):
    gt.save({"a": gt.ones(2), "b": gt.tensor([1, 2], dtype=gt.int64)}, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as arrays:
        assert arrays["b"].tolist() == [1, 2]
    again = gt.load(tmp_path / "x.npz")
    assert again["b"].dtype == gt.int64 and again["a"].tolist() == [1, 1]
    np.savez(tmp_path / "bad.npz", a=np.array([print], dtype=object))
    with pytest.raises(ValueError, match=r"bad\.npz"):
        gt.load(tmp_path / "bad.npz")


def test_a_file_stays_as_it_was_if_saving_fails(tmp_path):
    path = tmp_path / "x.safetensors"
    gt.safetensors.save_file({"a": gt.ones(2)}, path)
    bad = gt.tensor([1.0, 2.0])[gt.tensor([5], dtype=gt.int64)]
    with pytest.raises(gt.WorkerError):
        gt.safetensors.save_file({"a": bad}, path)
    assert gt.load(path)["a"].tolist() == [1, 1]
    assert os.listdir(tmp_path) == ["x.safetensors"]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        gt.safetensors.save_file({"a": gt.ones(1)}, tmp_path / "nowhere" / "x.safetensors")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk here")
def test_a_full_disk_is_told(tmp_path):
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="space"):
        gt.save({"a": gt.ones(100)}, full)


def header_of(text, rest=b"", length=None):
    """Return the bytes of a safetensors file with a header."""
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + rest


def entry(dtype="F32", shape=(1,), start=0, end=4):
    """Return the header of a file with one tensor."""
    return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}}


HOSTILE = {
    "short": b"abc",
    "no header": struct.pack("<Q", 0),
    "long header": header_of(b"{}", length=2**63),
    "header beyond the end": header_of(b"{}", length=5000),
    "no JSON": header_of(b"{nonsense}"),
    "no UTF-8": header_of(b"{\xff\xfe}"),
    "a list": header_of(b'["a"]'),
    "nested": header_of(b'{"a":' * 100_000),
    "truncated values": header_of(entry(), b"ab"),
    "values beyond": header_of(entry(), b"abcdefgh"),
    "wrong length": header_of(entry(end=8), b"abcdefgh"),
    "backwards": header_of(entry(start=4, end=0), b"abcd"),
    "overflow": header_of(entry(shape=(2**62, 2**62)), b"abcd"),
    "negative": header_of(b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', b"abcd"),
    "unknown dtype": header_of(entry(dtype="F33"), b"abcd"),
    "overlap": header_of({**entry(), "b": entry(start=2, end=6)["a"]}, b"abcdefgh"),
    "gap": header_of({**entry(), "b": entry(start=8, end=12)["a"]}, b"abcdefghijkl"),
    "broken structure": header_of(
        {"__metadata__": {"gt.structure": '{"is":"nothing"}'}, **entry()}, b"abcd"
    ),
    "deep structure": header_of(
        {"__metadata__": {"gt.structure": "[" * 100_000}, **entry()}, b"abcd"
    ),
    "missing tensor": header_of(
        {"__metadata__": {"gt.structure": '{"is":"tensor","name":"b"}'}, **entry()}, b"abcd"
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_errors_that_name_them(tmp_path, kind):
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(ValueError, match=r"hostile\.safetensors"):
        gt.load(path)
    with pytest.raises(ValueError):  # noqa: PT011
        gt.load(io.BytesIO(HOSTILE[kind]))


def test_dtypes_that_gt_lacks_are_told(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(header_of(entry(dtype="F8_E4M3", shape=(4,)), b"abcd"))
    with pytest.raises(TypeError, match="'a' has dtype F8_E4M3"):
        gt.safetensors.load_file(path)


def test_other_files_are_told(tmp_path):
    (tmp_path / "x.txt").write_text("hello, this is a text")
    with pytest.raises(ValueError, match="neither safetensors"):
        gt.load(tmp_path / "x.txt")
    with pytest.raises(FileNotFoundError):
        gt.load(tmp_path / "nothing")


def test_slices_and_metadata(tmp_path):
    path = tmp_path / "x.safetensors"
    value = gt.arange(12, dtype=gt.float32).reshape(4, 3)
    gt.safetensors.save_file({"b": value, "a": gt.ones((), dtype=gt.int8)}, path, {"k": "v"})
    with gt.safetensors.safe_open(path, "pt", "cpu") as file:
        assert file.keys() == ["a", "b"] and file.metadata() == {"k": "v"}
        part = file.get_slice("b")
        assert part.get_shape() == [4, 3] and part.get_dtype() == "F32"
        for index in (np.s_[1:3], np.s_[:, 1], np.s_[-2:, 0:2], np.s_[::2], np.s_[3], np.s_[4:]):
            assert part[index].tolist() == value[index].tolist()
        assert file.get_tensor("a").item() == 1
        with pytest.raises(KeyError, match="there are"):
            file.get_tensor("c")


def test_models_in_several_files(tmp_path):
    state = {f"w{i}": gt.full((100,), float(i)) for i in range(7)}
    gt.safetensors.save_sharded(state, tmp_path, max_shard_bytes=1000)
    index = json.loads((tmp_path / gt.safetensors.INDEX).read_text())
    assert index["metadata"]["total_size"] == 2800 and len(set(index["weight_map"].values())) == 4
    for path in (tmp_path, tmp_path / gt.safetensors.INDEX):
        again = gt.load(path)
        assert list(again) == list(state)
        assert all(again[name].tolist() == state[name].tolist() for name in state)
    for change in ("../x.safetensors", "/etc/passwd", 3):
        index["weight_map"]["w0"] = change
        (tmp_path / gt.safetensors.INDEX).write_text(json.dumps(index))
        with pytest.raises(ValueError, match="weight|own folder|index"):
            gt.load(tmp_path)
    index["weight_map"] = {"nothing": "model-00001-of-00004.safetensors"}
    (tmp_path / gt.safetensors.INDEX).write_text(json.dumps(index))
    with pytest.raises(ValueError, match="lacks nothing"):
        gt.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="neither"):
        gt.load(os.path.dirname(tmp_path))


def test_a_loaded_tensor_outlives_its_file(tmp_path):
    path = tmp_path / "x.safetensors"
    gt.safetensors.save_file({"a": gt.arange(10000, dtype=gt.float32)}, path)
    loaded = gt.load(path)["a"]
    gt.safetensors.save_file({"a": gt.zeros(3)}, path)
    os.remove(path)
    assert (loaded + 1).sum().item() == sum(range(10000)) + 10000


@pytest.mark.parametrize("load", [gt.load, gt.safetensors.load_file, gt.safetensors.safe_open])
def test_a_pipe_is_refused(tmp_path, load):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe: a pipe, expected a plain file"):
        load(tmp_path / "pipe")


def test_a_pipe_or_folder_in_the_place_of_a_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(OSError, match="a pipe, expected a plain file"):
        gt.load(tmp_path)
    with pytest.raises(IsADirectoryError, match="a folder, expected a file"):
        gt.safetensors.safe_open(tmp_path)
    with pytest.raises(OSError, match="a pipe, expected a plain file"):
        pytorch.places(str(tmp_path / "model.safetensors"))


def test_npz_keeps_all_names_and_dtypes(tmp_path):
    path = tmp_path / "x.npz"
    names = ["allow_pickle", "file", "args", "a", "a.npy", "b/c", "weight \u00e4"]
    state = {name: gt.tensor([at]) for at, name in enumerate(names)}
    state |= {"trained": gt.ones(2, requires_grad=True), "complex": gt.tensor(1 + 2j)}
    gt.save(state, path)
    read = gt.load(path)
    assert {name: value.tolist() for name, value in read.items()} == {
        name: value.tolist() for name, value in state.items()
    }
    assert [read[name].dtype for name in state] == [value.dtype for value in state.values()]
    with np.load(path) as arrays:
        assert arrays["file"] == [1]
    assert os.listdir(tmp_path) == ["x.npz"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: {"x": {"y": gt.ones(1)}}, "'x' is a dict"),
        (lambda: {"x": None}, "'x' is a NoneType"),
        (lambda: {"x": "text"}, "'x' is a str"),
        (lambda: {"x": [[1], [2, 3]]}, "'x' is a list"),
        (lambda: {"x": gt.ones(1, dtype=gt.bfloat16)}, "'x' has dtype bfloat16"),
        (lambda: {3: gt.ones(1)}, "the key 3 is a int"),
        (lambda: gt.ones(1), "not a Tensor"),
        (lambda: {"a\0b": gt.ones(1)}, "cannot hold the name"),
        (lambda: {"\ud800": gt.ones(1)}, "cannot hold the name"),
    ],
)
def test_what_npz_lacks_is_told(tmp_path, make, message):
    gt.save({"x": gt.zeros(1)}, tmp_path / "x.npz")
    with pytest.raises((TypeError, ValueError), match=message):
        gt.save(make(), tmp_path / "x.npz")
    assert gt.load(tmp_path / "x.npz")["x"].tolist() == [0]


def test_a_slice_has_the_name_of_its_dtype_in_the_file(tmp_path):
    path = tmp_path / "x.safetensors"
    dtypes = DTYPES.replace(" complex128", "").split()
    gt.safetensors.save_file({name: gt.zeros(1, dtype=getattr(gt, name)) for name in dtypes}, path)
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])
    with gt.safetensors.safe_open(path) as file:
        for name in dtypes:
            assert file.get_slice(name).get_dtype() == header[name]["dtype"]


def test_a_container_in_itself_is_told(tmp_path):
    circle = {"a": [1]}
    circle["a"].append(circle)
    with pytest.raises(ValueError, match="the dict at 'a.1' contains itself"):
        gt.save(circle, tmp_path / "x.gt")
    deep = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested more than 100 deep at '0.0"):
        gt.save(deep, tmp_path / "x.gt")
    deep = []
    for _ in range(98):
        deep = {(1,): deep}
    gt.save([deep, [1], [1]], tmp_path / "x.gt")
    assert gt.load(tmp_path / "x.gt") == [deep, [1], [1]]


def test_half_a_surrogate_pair(tmp_path):
    state = {"\ud800": gt.ones(1), "\\ud800": gt.zeros(1), "text": "\ud800"}
    gt.save(state, tmp_path / "x.gt")
    same(gt.load(tmp_path / "x.gt"), state)
    with pytest.raises(ValueError, match="is no valid Unicode"):
        gt.safetensors.save_file({"\ud800": gt.ones(1)}, tmp_path / "x.safetensors")


def test_scalars_of_numpy(tmp_path):
    state = [np.complex64(1 + 2j), np.complex128(3j), np.float16(2), np.int8(3), np.bool_(True)]
    gt.save(state, tmp_path / "x.gt")
    same(gt.load(tmp_path / "x.gt"), [1 + 2j, 3j, 2.0, 3, True])
    for value in (np.longdouble(1), np.bytes_(b"x")):
        with pytest.raises(TypeError, match="at 'x' cannot be saved"):
            gt.save({"x": value}, tmp_path / "x.gt")


def test_broken_bytes_are_told(tmp_path):
    gt.save(b"bytes", tmp_path / "x.gt")
    raw = (tmp_path / "x.gt").read_bytes()
    assert b"Ynl0ZXM=" in raw
    (tmp_path / "x.gt").write_bytes(raw.replace(b"Ynl0ZXM=", b"Yn!0ZX-="))
    with pytest.raises(ValueError, match="its structure is broken"):
        gt.load(tmp_path / "x.gt")
