"""Averages, spreads and norms of the elements where a mask is True; see `masked`."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.ops.annotations import Dims, DType
from gt.ops.masked import NAMESPACE, axes_of, cast_as, kept, sum, whole_mask
from gt.ops.precision import float_dtype
from gt.ops.registry import function


@function(namespace=NAMESPACE)
def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the median along an axis where the mask is True; NaN if there are no values.

    >>> gt.masked.median(gt.tensor([1.0, 2.0, 9.0]), mask=gt.tensor([True, True, False]))
    tensor(1., dtype=float32)
    """
    values = input if input.dtype.is_floating_point else input.float()
    found = gt.nanmedian(kept(values, mask, math.nan), dim, keepdim).values
    return found if input.dtype.is_floating_point else cast_as(found, input, dtype)


@function(namespace=NAMESPACE)
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the norm of the values where the mask is True; see `gt.linalg.vector_norm`.

    >>> gt.masked.norm(gt.tensor([3.0, 4.0]), mask=gt.tensor([True, False]))
    tensor(3., dtype=float32)
    """
    values = kept(input, mask, math.inf if ord == -math.inf else 0)
    return gt.linalg.vector_norm(
        values, 2.0 if ord is None else ord, axes_of(dim), keepdim, dtype=dtype
    )


@function(namespace=NAMESPACE)
def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the mean of the values where the mask is True; NaN if there are none.

    >>> gt.masked.mean(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=float32)
    """
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(
        input, dim, keepdim, mask
    )


def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """Return the number of elements in each average."""
    which = gt.ones_like(input, dtype=gt.bool) if mask is None else whole_mask(input, mask)
    return gt.sum(which, axes_of(dim), keepdim)


@function(namespace=NAMESPACE)
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance where the mask is True: the squares over n - correction, by default 1.

    >>> gt.masked.var(gt.tensor([1.0, 3.0, 9.0]), mask=gt.tensor([True, True, False]))
    tensor(2., dtype=float32)
    """
    if unbiased is not None and correction is not None:
        raise ValueError("var: give unbiased or correction, which have the same meaning, not both")
    if correction is None:
        correction = 0 if unbiased is False else 1
    wide = _spread_dtype(input, dtype)
    average = sum(input, dim, keepdim=True, dtype=wide, mask=mask) / _count(input, dim, True, mask)
    distance = input - average
    total = sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = _count(input, dim, keepdim, mask)
    return total / gt.clamp(count - correction, min=0)._cast(wide)


def _spread_dtype(input: Tensor, dtype: DType | None) -> Any:
    if dtype is not None:
        return dtype
    return float_dtype(input)


@function(namespace=NAMESPACE)
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the standard deviation where the mask is True: the square root of `var`.

    >>> gt.masked.std(gt.tensor([1.0, 3.0, 9.0]), correction=0, mask=gt.tensor([True, True, False]))
    tensor(1., dtype=float32)
    """
    spread = var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    )
    return spread.sqrt()
