"""NumPy's functions on tensors, with NumPy's arguments, have the same results as on arrays."""

import gt
import numpy as np
import pytest

VALUES = np.array([[1.0, 2.5, -3.0], [4.0, 0.0, 2.0]], dtype=np.float32)
FOLDS = ["sum", "mean", "max", "min", "std", "var", "prod", "any", "all"]


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_folds(name, axis, keepdims):
    function = getattr(np, name)
    expected = function(VALUES, axis=axis, keepdims=keepdims)
    found = function(gt.tensor(VALUES), axis=axis, keepdims=keepdims)
    assert isinstance(found, gt.Tensor)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(function(gt.tensor(VALUES))), function(VALUES), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "std", "var", "cumsum"])
def test_a_dtype_is_that_of_the_computation(name):
    function = getattr(np, name)
    found = function(gt.tensor(VALUES), axis=0, dtype=np.float64)
    assert found.dtype == gt.float64
    np.testing.assert_allclose(np.asarray(found), function(VALUES, axis=0, dtype=np.float64))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "std", "cumsum", "clip", "round"])
def test_results_go_into_out(name):
    function = getattr(np, name)
    arguments = {"clip": {"a_min": 0.0, "a_max": 2.0}, "round": {"decimals": 0}}
    options = arguments.get(name, {"axis": 1})
    expected = function(VALUES, **options)
    out = np.zeros_like(expected)
    assert function(gt.tensor(VALUES), out=out, **options) is out
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    into = gt.zeros(*expected.shape)
    assert function(gt.tensor(VALUES), out=into, **options) is into
    np.testing.assert_allclose(into.numpy(), expected, rtol=1e-6)


def test_what_only_numpy_has_is_computed_by_numpy():
    where = VALUES > 0
    found = np.sum(gt.tensor(VALUES), axis=0, where=where)
    np.testing.assert_allclose(found, np.sum(VALUES, axis=0, where=where))
    assert np.max(gt.tensor(VALUES), initial=10.0) == 10.0


def test_axes_are_reordered_as_by_numpy():
    values = np.arange(24.0).reshape(2, 3, 4)
    for reorder in (
        np.transpose,
        lambda x: np.transpose(x, (2, 0, 1)),
        lambda x: np.transpose(x, axes=[1, 0, 2]),
        lambda x: np.moveaxis(x, 0, -1),
        lambda x: np.moveaxis(x, (0, 1), (2, 0)),
        lambda x: np.swapaxes(x, 0, 2),
    ):
        found = reorder(gt.tensor(values))
        assert isinstance(found, gt.Tensor)
        np.testing.assert_array_equal(found.numpy(), reorder(values))


def test_integers_are_averaged_as_float64():
    whole = np.array([1, 2, 4], dtype=np.int32)
    for function in (np.mean, np.std, np.var):
        found = function(gt.tensor(whole))
        assert found.dtype == gt.float64
        np.testing.assert_allclose(found.item(), function(whole))
    assert np.std(gt.tensor(VALUES), ddof=1).item() == pytest.approx(np.std(VALUES, ddof=1))


def test_what_asks_for_places_and_sizes():
    x = gt.tensor(VALUES)
    assert np.argmax(x).item() == np.argmax(VALUES)
    assert np.argmin(x, axis=1).tolist() == np.argmin(VALUES, axis=1).tolist()
    assert np.size(x) == 6 and np.size(x, 1) == 3 and np.shape(x) == (2, 3) and np.ndim(x) == 2
    assert np.flip(x, 0).tolist() == np.flip(VALUES, 0).tolist()


def test_python_protocols():
    x = gt.tensor([1.5, 2.567])
    assert 1.5 in x and 9 not in x and gt.tensor(1.5) in x
    with pytest.raises(RuntimeError, match="not objects of type str"):
        "a" in x  # noqa: B015
    assert round(x).tolist() == [2, 3]
    assert round(x, 1).tolist() == pytest.approx([1.5, 2.6])
    assert (x == object()) is False and (x != {}) is True and (x == (1.5, 2.567)) is False
    with pytest.raises(TypeError, match="not supported between"):
        x < "a"  # noqa: B015
    assert gt.tensor(1.0) == pytest.approx(1.0)
