"""Python numbers with tensors: every use, with every dtype and at every limit, has PyTorch's result
or raises an error where PyTorch does."""

import math
import warnings

import gt
import pytest
from pytorch import torch

NUMBERS = [
    *(0, 1, -1, 2, 5, 127, 128, 255, 256, 300, -128, -129, -255, -256, 32767, 32768, -32769),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**40, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.1, 0.5, -0.5, 2.7, -1.5, 1.0001, 300.0, 65504.0, 65520.0, 1e10, 1e39, -1e39, 1e300),
    *(math.inf, -math.inf, math.nan, True, False),
]
COMPLEX = [1 + 2j, 2 + 0j]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]


def _with_item(m, x, index, number):
    x[index] = number
    return x


def _index(m, *places):
    return m.tensor(places, dtype=m.int64)


COMPARED = {
    "==": lambda m, x, v: x == v,
    "!=": lambda m, x, v: x != v,
    "<": lambda m, x, v: x < v,
    "<=": lambda m, x, v: x <= v,
    ">": lambda m, x, v: x > v,
    ">=": lambda m, x, v: x >= v,
}
LIMITED = {
    "clamp min": lambda m, x, v: x.clamp(min=v),
    "clamp max": lambda m, x, v: x.clamp(max=v),
    "clamp both": lambda m, x, v: x.clamp(v, v),
    "clamp_": lambda m, x, v: x.clamp_(min=v),
}
STORED = {
    "masked_fill": lambda m, x, v: x.masked_fill(x.bool(), v),
    "fill_": lambda m, x, v: x.fill_(v),
    "full": lambda m, x, v: m.full((2,), v, dtype=x.dtype),
    "full_like": lambda m, x, v: m.full_like(x, v),
    "new_full": lambda m, x, v: x.new_full((2,), v),
    "x[mask]": lambda m, x, v: _with_item(m, x, x.bool(), v),
    "x[slice]": lambda m, x, v: _with_item(m, x, slice(0, 2), v),
    "x[index]": lambda m, x, v: _with_item(m, x, _index(m, 0, 2), v),
    "index_fill": lambda m, x, v: x.index_fill(0, _index(m, 1), v),
    "scatter": lambda m, x, v: x.scatter(0, _index(m, 1), v),
}
CHOSEN = {
    "where, second": lambda m, x, v: m.where(x.bool(), x, v),
    "where, first": lambda m, x, v: m.where(x.bool(), v, x),
}
RESTS = {
    "remainder": lambda m, x, v: m.remainder(x, v),
    "fmod": lambda m, x, v: m.fmod(x, v),
    "pow": lambda m, x, v: x**v,
}


def _outcome(module, use, dtype, number):
    """Return dtype and values of a result, or None for an error."""
    x = module.tensor([1, 2, 100], dtype=getattr(module, dtype))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = use(module, x, number)
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None
    return str(result.dtype).split(".")[-1], result.tolist()


def _alike(one, other, tolerance):
    if one is None or other is None:
        return one is other
    close = [
        a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=tolerance)
        for a, b in zip(one[1], other[1], strict=True)
    ]
    return one[0] == other[0] and all(close)


def _check(use, dtype, numbers, tolerance=0.0):
    for number in numbers:
        expected = _outcome(torch, use, dtype, number)
        found = _outcome(gt, use, dtype, number)
        context = f"{number!r}: {found}, PyTorch {expected}"
        assert _alike(found, expected, tolerance), context


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARED)
def test_a_number_is_compared_as_the_dtype_holds_it(name, dtype):
    _check(COMPARED[name], dtype, NUMBERS)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_saturates(name, dtype):
    _check(LIMITED[name], dtype, NUMBERS)


@pytest.mark.parametrize("dtype", ["bool"])
@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_may_make_bools_numbers(name, dtype):
    _check(LIMITED[name], dtype, [n for n in NUMBERS if not isinstance(n, bool)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STORED)
def test_what_is_stored_must_fit(name, dtype):
    _check(STORED[name], dtype, NUMBERS)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("name", ["masked_fill", "x[mask]", "x[slice]"])
def test_a_complex_number_is_stored_if_it_is_real(name, dtype):
    _check(STORED[name], dtype, COMPLEX)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_chosen_must_fit(name, dtype):
    _check(CHOSEN[name], dtype, NUMBERS)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", RESTS)
def test_a_divisor_and_an_exponent_are_rounded_first(name, dtype):
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-5)
    numbers = [n for n in NUMBERS if not isinstance(n, bool)]
    _check(RESTS[name], dtype, numbers, tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_alone_take_the_default_dtype(dtype):
    before = gt.get_default_dtype()
    try:
        gt.set_default_dtype(getattr(gt, dtype))
        chosen = gt.where(gt.tensor([True, False], dtype=gt.bool), 0.1, 0.5)
        assert chosen.dtype == getattr(gt, dtype)
        assert chosen.tolist() == [torch.tensor(0.1, dtype=getattr(torch, dtype)).item(), 0.5]
    finally:
        gt.set_default_dtype(before)


def test_a_float_alpha_needs_floats():
    x = gt.tensor([1, 2], dtype=gt.int64)
    with pytest.raises(TypeError, match="add: alpha must be an int"):
        gt.add(x, x, alpha=0.5)
    flags = gt.tensor([True, False], dtype=gt.bool)
    assert gt.add(flags, flags, alpha=2).dtype == gt.bool


DRAWN = [
    ("uint8", 0, 300),
    ("int8", -200, 10),
    ("uint8", -1, 5),
    ("int16", 0, 40_000),
    ("float16", 0, 70_000),
    ("bool", 0, 3),
    ("int32", 0, 2**31 + 1),
    ("uint8", 0, 256),
    ("int64", 0, 2**62),
]


@pytest.mark.parametrize(("dtype", "low", "high"), DRAWN)
def test_draws_stay_within_the_dtype(dtype, low, high):
    for draw in (
        lambda m, x, _: m.randint(low, high, (9,), dtype=x.dtype).float() * 0,
        lambda m, x, _: x.random_(low, high).float() * 0,
    ):
        _check(draw, dtype, [0])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "float16"])
def test_an_order_has_each_number_once(dtype):
    for count in (100, 200, 300, 40_000, 70_000):
        _check(lambda m, x, n: m.randperm(n, dtype=x.dtype).sort()[0].float(), dtype, [count])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("limits", [(0, 1), (5, 6), (-1, 1), (1000, 1001)])
def test_uniform_numbers_stay_below_their_limit(dtype, limits):
    drawn = gt.empty(200_000, dtype=getattr(gt, dtype)).uniform_(*limits)
    assert drawn.min().item() >= limits[0] and drawn.max().item() < limits[1]


@pytest.mark.parametrize("limits", [(2**53 + 1, 2**53 + 4, 1), (2**62, 2**62 + 3, 1), (9, 0, -4)])
def test_whole_steps_are_counted_exactly(limits):
    expected = torch.arange(*limits, dtype=torch.int64).tolist()
    assert gt.arange(*limits, dtype=gt.int64).tolist() == expected


def test_complex_limits():
    expected = torch.linspace(1 + 1j, 2 + 3j, 3).tolist()
    assert gt.linspace(1 + 1j, 2 + 3j, 3).tolist() == expected
    with pytest.raises(TypeError, match="complex, but dtype is float32"):
        gt.linspace(1 + 1j, 2, 3, dtype=gt.float32)
