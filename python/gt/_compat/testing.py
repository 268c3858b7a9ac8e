"""Comparisons for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt._public import show_callers

__all__ = ["assert_close"]

#: The default tolerances, relative and absolute, by dtype.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless values are close: |actual - expected| <= atol + rtol * |expected|.

    Args:
        actual: a tensor, number or array; or a sequence or mapping of them.
        expected: the same structure with the expected values.
        allow_subclasses: whether the two may be of different types.
        rtol: the tolerance relative to the expected value; the larger of both dtypes' by default.
        atol: the absolute tolerance; to be given together with rtol.
        equal_nan: whether NaN equals NaN.
        check_device: has no effect: all tensors are on one device.
        check_dtype: whether dtypes must be the same; otherwise both are promoted.
        check_layout: has no effect: all tensors have one layout.
        check_stride: whether strides must be the same.
        msg: the error's text, or a function that makes it from the default text.

    >>> gt.testing.assert_close(gt.ones(2), gt.tensor([1.0, 1.0]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"assert_close: rtol is {rtol} and atol {atol}: give both or none")
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(f"assert_close: {type(actual).__name__} and {type(expected).__name__}")
    bounds = None if rtol is None or atol is None else (rtol, atol)
    wrong = _difference(actual, expected, bounds, equal_nan, check_dtype, check_stride, "")
    if wrong:
        raise AssertionError(wrong if msg is None else msg(wrong) if callable(msg) else msg)


def _difference(
    actual: Any,
    expected: Any,
    bounds: tuple[float, float] | None,
    equal_nan: bool,
    check_dtype: bool,
    check_stride: bool,
    where: str,
) -> str:
    """Return the first difference as text; "" if all values are close."""
    rest = (bounds, equal_nan, check_dtype, check_stride)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys differ{where}: {list(actual)} and {list(expected)}"
        pairs = [(key, actual[key], expected[key]) for key in expected]
    elif _is_list(actual) and _is_list(expected):
        if len(actual) != len(expected):
            return f"The lengths differ{where}: {len(actual)} and {len(expected)}"
        pairs = [(at, *pair) for at, pair in enumerate(zip(actual, expected, strict=True))]
    else:
        return _difference_of_two(actual, expected, *rest, where)
    found = (_difference(one, other, *rest, f"{where} at {key!r}") for key, one, other in pairs)
    return next(filter(None, found), "")


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _difference_of_two(
    actual: Any,
    expected: Any,
    bounds: tuple[float, float] | None,
    equal_nan: bool,
    check_dtype: bool,
    check_stride: bool,
    where: str,
) -> str:
    """Return the difference of two tensors, arrays or numbers as text; "" if they are close."""
    if not check_dtype or not (_has_dtype(actual) and _has_dtype(expected)):
        check_dtype = False
    import numpy as np  # slow to import

    one, other = (
        each.detach() if isinstance(each, Tensor) else gt.asarray(each)
        for each in (actual, expected)
    )
    if one.shape != other.shape:
        return f"The shapes differ{where}: {one.shape} and {other.shape}"
    if check_dtype and one.dtype != other.dtype:
        return f"The dtypes differ{where}: {one.dtype.name} and {other.dtype.name}"
    if check_stride and one.stride() != other.stride():
        return f"The strides differ{where}: {one.stride()} and {other.stride()}"
    rtol, atol = _bounds(one, other) if bounds is None else bounds
    a, b = one.numpy(), other.numpy()
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if close.all():
        return ""
    with np.errstate(all="ignore"):
        off = np.abs(a - b) if a.dtype != bool else a != b
        worst = np.unravel_index(np.argmax(np.where(close, 0, off)), close.shape)
    return (
        f"{int((~close).sum())} of {close.size} values differ{where} by more than {atol} + {rtol} "
        f"* |expected|; the worst at {tuple(int(each) for each in worst)}: {a[worst]}, expected "
        f"{b[worst]}"
    )


def _bounds(one: Tensor, other: Tensor) -> tuple[float, float]:
    """Return the larger rtol and atol of two dtypes."""
    first, second = (_TOLERANCES.get(each.dtype.name, (0.0, 0.0)) for each in (one, other))
    return max(first[0], second[0]), max(first[1], second[1])


def _has_dtype(given: Any) -> bool:
    return hasattr(given, "dtype")


show_callers(globals())
