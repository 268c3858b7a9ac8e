"""Expressions have the same results as in PyTorch: values, dtypes, types, or an error."""

import warnings

import gt
import numpy as np
import pytest
from idioms import SAME
from pytorch import torch

#: The documented differences: GT's result of each expression.
DIFFERENT = {
    # A list of numbers is float32.
    "m.tensor([1, 2]).dtype": "gt.float32",
    "m.arange(3, dtype=m.float32).numpy().dtype": "float32",
    # NumPy leaves the sum to the tensor, even if the array is the left operand.
    "(np.ones(2) + m.ones(2)).dtype": "gt.float64",
}


def plain(value):
    """Return a result in a form that can be compared between GT and PyTorch."""
    if isinstance(value, gt.Tensor | torch.Tensor):
        array = value.detach().numpy() if value.dtype not in (gt.bfloat16, torch.bfloat16) else None
        return str(value.dtype).split(".")[-1], tuple(value.shape), array
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | int | bool | type(None) | np.ndarray):
        return value
    return str(value).replace("torch", "gt")


def same(one, other) -> bool:
    """Return whether two results are equal, floats within a tolerance."""
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.allclose(one, other, 1e-5, 1e-6, equal_nan=True)
    if isinstance(one, float):
        return isinstance(other, float) and np.isclose(one, other, 1e-6, equal_nan=True)
    return type(one) is type(other) and one == other


def outcome(expression, module):
    """Return an expression's result, or the error that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(eval(expression, {"m": module, "np": np}))
    except Exception as error:
        return error


@pytest.mark.parametrize("expression", SAME)
def test_an_idiom(expression):
    ours, theirs = outcome(expression, gt), outcome(expression, torch)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"PyTorch raises {theirs!r}, GT returns {ours}"
        assert str(ours), "an error has a message"
    else:
        assert not isinstance(ours, Exception), repr(ours)
        assert same(ours, theirs), f"GT returns {ours}, PyTorch {theirs}"


@pytest.mark.parametrize("expression", DIFFERENT)
def test_a_documented_difference(expression):
    assert str(eval(expression, {"m": gt, "np": np})) == DIFFERENT[expression]


def test_an_integer_that_a_list_would_round_is_an_error():
    with pytest.raises(ValueError, match="16777217 has more digits than float32"):
        gt.tensor([2**24 + 1])
    assert gt.tensor(2**24 + 1, dtype=gt.int64).item() == 2**24 + 1


def test_a_generator_records_nothing_while_it_runs():
    @gt.no_grad()
    def numbers():
        sent = yield gt.is_grad_enabled()
        yield sent, gt.is_grad_enabled()

    steps = numbers()
    assert next(steps) is False and gt.is_grad_enabled()
    assert steps.send(5) == (5, False) and gt.is_grad_enabled()


def test_bfloat16_leaves_by_dlpack_as_bfloat16():
    there = torch.from_dlpack(gt.tensor([[1.0, 2.5]], dtype=gt.bfloat16))
    assert there.dtype is torch.bfloat16 and there.tolist() == [[1.0, 2.5]]
