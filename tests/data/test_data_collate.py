"""Tests of `default_collate` and `default_convert`: structure, dtypes and errors as in PyTorch."""

from collections import OrderedDict, UserDict, namedtuple

import gt
import numpy as np
import pytest
from gt import data

Point = namedtuple("Point", ["x", "y"])

BATCHES = [
    [1, 2, 3],
    [True, False],
    [1, 2.5],
    [2.5, 1],
    [1.5, 2.5],
    ["a", "b"],
    [b"a", b"b"],
    [np.float32(1), np.float32(2)],
    [np.int16(1), np.int16(2)],
    [np.float64(1), np.float64(2)],
    [np.bool_(True), np.bool_(False)],
    [np.ones(2, np.float32), np.zeros(2, np.float32)],
    [np.ones((2, 3), np.uint8)] * 2,
    [np.ones(2, np.float32), np.ones(2, np.float64)],
    [np.ones(2, np.float32), np.ones(2, np.int64)],
    [np.ones(2, np.uint8), np.ones(2, np.int8)],
    [np.array(3), np.array(4)],
    [(1, 2.0), (3, 4.0)],
    [[1, "a"], [2, "b"]],
    [{"x": 1, "y": (np.ones(2), "s")}, {"x": 2, "y": (np.zeros(2), "t")}],
    [OrderedDict(a=1), OrderedDict(a=2)],
    [UserDict(a=1), UserDict(a=2)],
    [Point(1, 2.0), Point(3, 4.0)],
    [range(2), range(2)],
    [{"empty": []}, {"empty": []}],
]


def check_same(ours, theirs, torch):
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, gt.Tensor) and str(theirs.dtype)[6:] == ours.dtype.name
        assert ours.tolist() == theirs.tolist()
        return
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict | UserDict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            check_same(one, other, torch)
    else:
        assert ours == theirs


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_as_pytorch(batch):
    torch = pytest.importorskip("torch")
    from torch.utils.data import default_collate, default_convert

    check_same(data.default_collate(batch), default_collate(batch), torch)
    check_same(data.default_convert(batch), default_convert(batch), torch)


def test_tensors_of_gt_and_of_pytorch():
    torch = pytest.importorskip("torch")
    assert data.default_collate([gt.arange(2), gt.arange(2)]).tolist() == [[0, 1], [0, 1]]
    for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.bool):
        batch = [torch.ones(2, dtype=dtype), torch.zeros(2, dtype=dtype)]
        for made in (data.default_collate(batch), gt.stack(data.default_convert(batch))):
            assert isinstance(made, gt.Tensor) and made.dtype.name == str(dtype)[6:]
            assert made.float().tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    "batch, error, message",
    [
        ([np.ones(2), np.ones(3)], RuntimeError, "equal size, but got"),
        ([[1, 2], [3]], RuntimeError, "each element in list of batch should be of equal size"),
        ([1j, 2j], TypeError, "batch must contain tensors, numpy arrays, numbers, dicts or lists"),
        ([np.array(["a"])] * 2, TypeError, "batch must contain tensors"),
        ([None, None], TypeError, "NoneType"),
        ([{"a": 1}, {"b": 1}], KeyError, "a"),
    ],
    ids=str,
)
def test_errors_as_pytorchs(batch, error, message):
    with pytest.raises(error, match=message):
        data.default_collate(batch)
    torch = pytest.importorskip("torch")
    with pytest.raises(error):
        torch.utils.data.default_collate(batch)


def test_tensors_of_different_shapes():
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([gt.ones(2), gt.ones(3)])
