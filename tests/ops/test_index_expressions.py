"""Index expressions agree with PyTorch: values, gradients, assignments, errors."""

import random

import gt
import numpy as np
import pytest
from pytorch import torch

SHAPE = (4, 3, 5)
EXPRESSIONS = 200


def tensor_entry(draw: random.Random, values: np.ndarray):
    """Return an index entry for GT and for PyTorch from an array."""
    kind = draw.choice(("tensor", "tensor", "list", "array"))
    if kind == "tensor" or values.ndim == 0 or values.size == 0:
        return gt.from_numpy(values), torch.from_numpy(values)
    if kind == "list" and values.ndim == 1:
        return values.tolist(), values.tolist()
    return values, values


def places(draw: random.Random, length: int, shape: tuple, unique: bool) -> np.ndarray:
    """Return random values of an index tensor; if `unique`, no two refer to the same element."""
    size = int(np.prod(shape))
    drawn = draw.sample(range(length), size) if unique else draw.choices(range(length), k=size)
    drawn = [at - length if draw.random() < 0.3 else at for at in drawn]
    return np.array(drawn, np.int64).reshape(shape)


def expression(draw: random.Random, shape: tuple = SHAPE) -> tuple[tuple, tuple]:
    """Return a random index expression for GT, and the same for PyTorch."""
    ours, theirs, axis = [], [], 0
    mixed = draw.choice(((), (2,), (1,), (2, 1)))
    has_ellipsis = has_places = False
    while axis < len(shape) and len(ours) < 5:
        kind = draw.choice(
            "int slice slice none ellipsis bool mask mask index index scalar".split()
        )
        length = shape[axis]
        if kind == "int":
            entry = (at := draw.randrange(-length, length), at)
            axis += 1
        elif kind == "slice":
            ends = [draw.choice((None, draw.randint(-length - 1, length + 1))) for _ in "ab"]
            entry = (slice(*ends, draw.choice((None, 1, 2))),) * 2
            axis += 1
        elif kind == "none":
            entry = (None, None)
        elif kind == "ellipsis":
            if has_ellipsis:
                break
            # Entries after the ellipsis count from the last axis.
            has_ellipsis, axis = True, draw.randint(axis, len(shape))
            entry = (..., ...)
        elif kind == "bool":
            if has_places:
                continue
            entry = (value := draw.random() < 0.7, value)
            has_places = True
        elif kind == "mask":
            # The number of elements that a mask selects would have to broadcast with other indices.
            if has_places:
                continue
            rank = draw.randint(0, len(shape) - axis)
            values = np.array(
                np.random.default_rng(draw.randrange(99)).random(shape[axis : axis + rank]) < 0.5
            )
            entry = tensor_entry(draw, values)
            axis, has_places = axis + rank, True
        elif kind == "index":
            if has_places and not mixed:
                continue
            if has_places and any(getattr(entry, "dtype", None) == gt.bool for entry in ours):
                continue
            entry = tensor_entry(draw, places(draw, length, mixed, unique=True))
            axis, has_places = axis + 1, True
            mixed = mixed or (1,)
        else:
            value = np.array(draw.randrange(-length, length))
            entry = gt.from_numpy(value), torch.from_numpy(value)
            axis += 1
        ours.append(entry[0])
        theirs.append(entry[1])
        if draw.random() < 0.2:
            break
    return tuple(ours), tuple(theirs)


def drawn(seed: int):
    """Return a tensor, a random expression that PyTorch accepts for it, and PyTorch's result."""
    draw = random.Random(seed)
    while True:
        ours, theirs = expression(draw)
        x = np.random.default_rng(seed).standard_normal(SHAPE).astype("float32")
        try:
            part = torch.from_numpy(x)[theirs]
        except (IndexError, RuntimeError):
            continue
        return x, ours, theirs, part


@pytest.mark.parametrize("seed", range(EXPRESSIONS))
def test_reading_and_its_gradient(seed):
    x, ours, theirs, _ = drawn(seed)
    mine, other = gt.from_numpy(x).requires_grad_(), torch.from_numpy(x).requires_grad_()
    part, expected = mine[ours], other[theirs]
    assert part.shape == tuple(expected.shape), ours
    np.testing.assert_array_equal(part.detach().numpy(), expected.detach().numpy())
    (part * part).sum().backward()
    (expected * expected).sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("seed", range(EXPRESSIONS))
def test_assigning_and_its_gradient(seed):
    x, ours, theirs, part = drawn(seed)
    draw = random.Random(seed + 1000)
    shape = part.shape if draw.random() < 0.6 else draw.choice((part.shape[-1:], (), (1,)))
    value = np.random.default_rng(seed).standard_normal(tuple(shape)).astype("float32")
    results = []
    for lib, key in ((gt, ours), (torch, theirs)):
        whole, new = lib.from_numpy(x).requires_grad_(), lib.from_numpy(value).requires_grad_()
        changed = whole * 1
        changed[key] = new
        (changed * changed).sum().backward()
        results.append([changed.detach().numpy(), whole.grad.numpy(), new.grad.numpy()])
    for mine, expected in zip(*results, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6, err_msg=str(ours))


@pytest.mark.parametrize("seed", range(0, EXPRESSIONS, 4))
def test_assigning_a_number(seed):
    x, ours, theirs, _ = drawn(seed)
    mine, expected = gt.from_numpy(x.copy()), torch.from_numpy(x.copy())
    mine[ours] = 7
    expected[theirs] = 7
    np.testing.assert_array_equal(mine.numpy(), expected.numpy())


def both(x: np.ndarray, key):
    """Return x[key(library)] in GT and in PyTorch."""
    return gt.from_numpy(x)[key(gt)], torch.from_numpy(x)[key(torch)]


X = np.arange(12, dtype="float32").reshape(3, 4)

SPECIAL = {
    "true": lambda lib: True,
    "false": lambda lib: False,
    "true and a row": lambda lib: (True, 1),
    "0-d mask": lambda lib: lib.tensor(False),
    "new axis and mask": lambda lib: (None, lib.tensor([True, False, True])),
    "row and mask": lambda lib: (1, lib.tensor([True, False, True, True])),
    "mask and column": lambda lib: (lib.tensor([True, False, True]), -1),
    "mask and slice": lambda lib: (lib.tensor([True, False, True]), slice(1, 3)),
    "mask and places": lambda lib: (
        lib.tensor([True, False, True]),
        lib.tensor([-1, 0], dtype=lib.int64),
    ),
    "mask of nothing": lambda lib: lib.tensor([False] * 3),
    "0-d place": lambda lib: lib.tensor(-1, dtype=lib.int64),
    "0-d place behind an ellipsis": lambda lib: (..., lib.tensor(2, dtype=lib.int32)),
    "0-d place between": lambda lib: (
        lib.tensor([0, 2], dtype=lib.int64),
        None,
        lib.tensor(1, dtype=lib.int64),
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_entries(name):
    part, expected = both(X, SPECIAL[name])
    assert part.shape == tuple(expected.shape)
    np.testing.assert_array_equal(part.numpy(), expected.numpy())


def test_uint8_is_a_mask_with_a_warning():
    with pytest.warns(UserWarning, match="uint8"):
        part = gt.from_numpy(X)[gt.tensor([1, 0, 1], dtype=gt.uint8)]
    np.testing.assert_array_equal(part.numpy(), X[[0, 2]])


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (lambda: gt.tensor([True, False]), r"mask of shape \(2,?\) .* shape \(3, 4\) at axis 0"),
        (lambda: (0, gt.tensor([True] * 3)), r"mask of shape \(3,?\) .* at axis 1"),
        (lambda: gt.ones(3, 4, 1).bool(), "too many"),
        (lambda: (gt.arange(2), gt.arange(3)), "do not broadcast"),
        (lambda: (gt.tensor([True, False, True]), gt.arange(3)), "do not broadcast"),
        (lambda: (0, 0, 0), "too many"),
        (lambda: 3, "out of range"),
        (lambda: gt.tensor([0.5]), "integer"),
    ],
)
def test_mistakes_are_index_errors(key, words):
    x = gt.from_numpy(X)
    with pytest.raises(IndexError, match=words):
        x[key()]


@pytest.mark.parametrize("place", [3, -4])
def test_a_place_out_of_range_is_an_index_error_where_the_value_is_asked_for(place):
    part = gt.from_numpy(X)[gt.tensor([0, place], dtype=gt.int64)]
    with pytest.raises(IndexError, match=rf"index {place} is not in \[-3, 3\)") as raised:
        part.numpy()
    assert isinstance(raised.value, gt.WorkerError)


def test_values_of_another_number_than_the_mask_has():
    x = gt.from_numpy(X.copy())
    with pytest.raises(ValueError, match=r"\(2, 4\)"):
        x[gt.tensor([True, False, True])] = gt.ones(3, 4)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("row", [(), (3,)])
def test_masks_of_many_parts(dtype, row):
    """Masks large enough for several threads, of a length that does not divide evenly."""
    random = np.random.default_rng(0)
    x = random.integers(0, 200, (100_003, *row)).astype(dtype)
    for chosen in (random.random(100_003) < 0.1, random.random(100_003) < 0.9):
        mask, other = gt.from_numpy(chosen), gt.from_numpy(x).clone()
        np.testing.assert_array_equal(other[mask].numpy(), x[chosen])
        np.testing.assert_array_equal(mask.nonzero().numpy(), np.argwhere(chosen))
        other[mask] = gt.from_numpy(x[chosen][::-1].copy())
        expected = x.copy()
        expected[chosen] = x[chosen][::-1]
        np.testing.assert_array_equal(other.numpy(), expected)
