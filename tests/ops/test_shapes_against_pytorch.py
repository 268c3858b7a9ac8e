"""Rearranging, joining, indexing and assigning beside PyTorch, on the same data."""

import gt
import numpy as np
import pytest
from pytorch import check, draw, to_gt, torch

DTYPES = ("float32", "float64", "int64", "bool", "bfloat16")
T = torch.tensor

#: Functions of a tensor of GT or PyTorch.
REARRANGED = {
    "reshape with -1": lambda x: x.reshape(4, -1),
    "reshape to the same": lambda x: x.reshape(2, 3, 4),
    "reshape of a tuple": lambda x: x.reshape((-1,)),
    "view": lambda x: x.view(6, 4),
    "flatten": lambda x: x.flatten(),
    "flatten some": lambda x: x.flatten(1),
    "flatten first two": lambda x: x.flatten(0, 1),
    "flatten of a number": lambda x: x[0, 0, 0].flatten(),
    "transpose": lambda x: x.transpose(0, -1),
    "transpose, reshape": lambda x: x.transpose(1, 2).reshape(2, 12),
    "mT": lambda x: x.mT,
    "t": lambda x: x[0].t(),
    "T": lambda x: x[0].T,
    "permute": lambda x: x.permute(2, 0, 1),
    "permute of a tuple": lambda x: x.permute((-1, 1, 0)),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "unsqueeze at the end": lambda x: x.unsqueeze(-1),
    "squeeze all": lambda x: x.unsqueeze(0).unsqueeze(-1).squeeze(),
    "squeeze one": lambda x: x.unsqueeze(0).squeeze(0),
    "squeeze of a longer axis": lambda x: x.squeeze(1),
    "expand": lambda x: x.unsqueeze(0).expand(5, 2, 3, 4),
    "expand with -1": lambda x: x[:, :1].expand(-1, 3, -1),
    "flip": lambda x: x.flip(0),
    "flip several": lambda x: x.flip(0, -1),
    "flip of a tuple": lambda x: x.flip((1, 2)),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "triu below": lambda x: x.triu(-1),
    "split": lambda x: x.split(2, 2),
    "split unevenly": lambda x: x.split(2, 1),
    "split in sizes": lambda x: x.split([1, 0, 2], 1),
    "chunk": lambda x: x.chunk(2, 1),
    "chunk of too many": lambda x: x.chunk(7, -1),
    "iteration": lambda x: list(x),
    "slices of a transposed tensor": lambda x: x.transpose(0, 2)[1:, ::2],
    "contiguous": lambda x: x.mT.contiguous(),
    "nonzero": lambda x: x.nonzero(),
    "nonzero of a number": lambda x: x[0, 0, 0].nonzero(),
}


@pytest.mark.parametrize("name", REARRANGED)
def test_rearranging(name):
    for dtype in DTYPES:
        x = draw(1, 2, 3, 4, dtype=dtype)
        check(REARRANGED[name](to_gt(x)), REARRANGED[name](x), (name, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_joining(dtype):
    a, b = draw(1, 2, 3, dtype=dtype), draw(2, 2, 3, dtype=dtype)
    for module in ("cat", "stack"):
        ours, theirs = getattr(gt, module), getattr(torch, module)
        for axis in (0, 1, -1):
            want = theirs([a, b, a], axis)
            check(ours([to_gt(a), to_gt(b), to_gt(a)], axis), want, (module, axis))
            check(ours([to_gt(a.mT), to_gt(b).mT], dim=axis), theirs([a.mT, b.mT], axis))
    check(gt.stack([to_gt(a[0, 0])] * 3), torch.stack([a[0, 0]] * 3))
    check(gt.cat([to_gt(a), to_gt(a[:0])]), torch.cat([a, a[:0]]))
    other = torch.ones(1, 3, dtype=torch.int32)
    check(gt.cat([to_gt(a), to_gt(other)]), torch.cat([a, other]), "promoted")


X = (4, 3, 5)
INDICES = {
    "number": 2,
    "negative number": -1,
    "all numbers": (1, 2, 3),
    "slice": slice(1, 3),
    "slice with steps": (slice(None, None, 2), slice(1, None), slice(0, 5, 3)),
    "slice beyond the end": slice(2, 100),
    "negative slice": (slice(-3, -1), slice(None), slice(-100, 2)),
    "empty slice": slice(3, 1),
    "none": None,
    "none between": (slice(None), None, 0, None),
    "ellipsis": (..., 1),
    "ellipsis between": (0, ..., slice(1, 3)),
    "ellipsis for nothing": (0, ..., 1, 2),
    "ellipsis alone": ...,
    "nothing": (),
    "mask of everything": draw(3, *X, dtype="bool"),
    "mask of first axes": draw(4, 4, 3, dtype="bool"),
    "mask of an axis": T([True, False, True, True]),
    "mask of the last axis": (..., T([True, False, True, True, False])),
    "empty mask": T([False] * 4),
    "mask and number": (T([True, False, True, True]), 1),
    "mask and slice": (T([True, False, True, True]), slice(1, 3)),
    "mask and integers": (T([True, False, True, False]), slice(None), T([4, 0])),
    "integers": T([3, 0, 0, -1]),
    "integers on two axes of the index": T([[3, 0], [1, 1]]),
    "integer without axes": T(2),
    "empty integers": T([], dtype=torch.int64),
    "int32": T([1, 2], dtype=torch.int32),
    "integers on the second axis": (slice(None), T([2, 0])),
    "adjacent": (T([0, 3]), T([2, 1])),
    "adjacent, later": (slice(None), T([0, 2]), T([2, 1])),
    "separated": (T([0, 3]), slice(None), T([2, 1])),
    "separated by none": (T([0, 3]), None, T([2, 1])),
    "broadcast": (T([[0], [3]]), T([2, 1, 0])),
    "all three": (T([0, 3]), T([1, 1]), T([4, 2])),
    "number and integers": (1, slice(None), T([4, 0, 4])),
    "integers and number": (T([1, 0]), slice(None), 2),
    "integers and none": (None, T([1, 0]), ...),
    "steps and integers": (slice(0, 4, 2), T([1, 0]), slice(1, 5, 2)),
}


def gt_key(key):
    return tuple(map(to_gt, key)) if isinstance(key, tuple) else to_gt(key)


@pytest.mark.parametrize("name", INDICES)
def test_indexing(name):
    key = INDICES[name]
    for dtype in ("float32", "int64", "bool"):
        x = draw(9, *X, dtype=dtype)
        check(to_gt(x)[gt_key(key)], x[key], name)
        turned = draw(9, *X[::-1], dtype=dtype).permute(2, 1, 0)
        check(to_gt(turned.permute(2, 1, 0)).permute(2, 1, 0)[gt_key(key)], turned[key], name)


@pytest.mark.parametrize("name", INDICES)
def test_assignment(name):
    key = INDICES[name]
    for dtype in ("float32", "int64", "bool"):
        x = draw(9, *X, dtype=dtype)
        part = x[key]
        values = [draw(10, *part.shape, dtype=dtype), 1]
        values += [draw(11, *part.shape[1:], dtype=dtype)] if part.ndim else []
        for value in values:
            want, got = x.clone(), to_gt(x)
            alias = got
            want[key] = value
            got[gt_key(key)] = to_gt(value)
            # With repeated indices any of the values may win: compare only unique writes.
            if name in ("integers", "integers on two axes of the index") and value is values[0]:
                continue
            check(alias, want, (name, dtype))


@pytest.mark.parametrize("name", INDICES)
def test_gradients_of_indexing_and_assignment(name):
    key = INDICES[name]
    for assigned in (False, True):
        x = draw(9, *X, dtype="float64").requires_grad_()
        value = draw(10, *x[key].shape[1:], dtype="float64").requires_grad_()
        ours, ours_value = to_gt(x), to_gt(value)

        def loss(x, value, key, assigned=assigned):
            y = x * x
            if assigned:
                y[key] = value * 3
                return (y * y).sum()
            return (y[key] * y[key]).sum()

        loss(x, value, key).backward()
        loss(ours, ours_value, gt_key(key)).backward()
        check(ours.grad, x.grad, (name, assigned))
        if assigned and name not in ("integers", "integers on two axes of the index"):
            check(ours_value.grad, value.grad, (name, "of the value"))


def test_augmented_assignment_to_an_index():
    x = draw(1, 4, 3)
    got = to_gt(x)
    x[1:3] += 2
    got[1:3] += 2
    x[:, 0] *= x[:, 1]
    got[:, 0] *= got[:, 1]
    x[T([0, 3])] -= 1
    got[gt.tensor([0, 3], dtype="int64")] -= 1
    check(got, x)


def test_assigned_values_take_the_tensors_dtype():
    for dtype, value in [("int64", T([2.7, -1.2])), ("float32", T([1, 2])), ("bool", T([0, 3]))]:
        x = draw(1, 3, 2, dtype=dtype)
        got = to_gt(x)
        x[1] = value
        got[1] = to_gt(value)
        check(got, x, dtype)


def test_places_named_by_a_tensor():
    x = draw(1, 4, 5, dtype="float64").requires_grad_()
    for axis in (0, 1, -1):
        index = draw(2, 3, 5 if axis == 0 else 6, dtype="int64", low=0, high=3)
        source = draw(3, *index.shape, dtype="float64")
        check(to_gt(x).gather(axis, to_gt(index)), x.gather(axis, index), ("gather", axis))
        want = x.scatter_add(axis, index, source)
        check(to_gt(x).scatter_add(axis, to_gt(index), to_gt(source)), want, ("scatter_add", axis))
    rows = T([3, 0, 0])
    for axis in (0, 1):
        check(to_gt(x).index_select(axis, to_gt(rows)), x.index_select(axis, rows))
        source = draw(4, *((3, 5) if axis == 0 else (4, 3)), dtype="float64")
        want = x.index_add(axis, rows, source)
        check(to_gt(x).index_add(axis, to_gt(rows), to_gt(source)), want, ("index_add", axis))


def test_random_slices():
    """Start, stop and step are random; a failure prints its seed."""
    for seed in range(60):
        random = np.random.default_rng(seed)
        shape = random.integers(0, 7, random.integers(1, 4))
        x, key = draw(seed, *shape), []
        for _ in shape:
            start, stop = (
                None if random.random() < 0.3 else int(n) for n in random.integers(-9, 9, 2)
            )
            key.append(slice(start, stop, int(random.integers(1, 4))))
        check(to_gt(x)[tuple(key)], x[tuple(key)], f"seed {seed}: {key}")


def test_creation():
    for got, want in [
        (gt.arange(5), torch.arange(5)),
        (gt.arange(2, 9, 3), torch.arange(2, 9, 3)),
        (gt.arange(5, 0, -2), torch.arange(5, 0, -2)),
        (gt.arange(0, 1, 0.1), torch.arange(0, 1, 0.1)),
        (gt.arange(3, dtype="float64"), torch.arange(3, dtype=torch.float64)),
        (gt.arange(0), torch.arange(0)),
        (gt.linspace(-1, 2, 7), torch.linspace(-1, 2, 7)),
        (gt.linspace(3, 3, 1), torch.linspace(3, 3, 1)),
        (gt.eye(3, 4), torch.eye(3, 4)),
        (gt.full((2, 2), True), torch.full((2, 2), True)),
        (gt.full((2,), 1.5), torch.full((2,), 1.5)),
        (gt.zeros(0, 3), torch.zeros(0, 3)),
        (gt.ones(2, dtype="bool"), torch.ones(2, dtype=torch.bool)),
        (gt.full_like(gt.ones(2, dtype="int32"), 7), torch.full((2,), 7, dtype=torch.int32)),
    ]:
        check(got, want)
