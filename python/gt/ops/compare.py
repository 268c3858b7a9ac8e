"""Comparisons of two tensors."""

from __future__ import annotations

import gt
from gt._gt import Tensor
from gt.ops.registry import operation


@operation
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and values; waits for the values.

    >>> gt.equal(gt.ones(2), gt.ones(2))
    True
    """
    return input.shape == other.shape and bool((input == other).all())


@operation
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Return where |input - other| <= atol + rtol * |other|.

    >>> gt.isclose(gt.tensor([1.0, 2.0]), gt.tensor([1.0, 2.1]))
    tensor([ True, False], dtype=bool)
    """
    input, other = (x.float() if x.dtype == gt.bool else x for x in (input, other))
    close = (input == other) | ((input - other).abs() <= atol + rtol * other.abs())
    return close | (input.isnan() & other.isnan()) if equal_nan else close


@operation
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Return whether |input - other| <= atol + rtol * |other| everywhere; waits for the values.

    >>> gt.allclose(gt.ones(2), gt.ones(2) + 1e-9)
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())
