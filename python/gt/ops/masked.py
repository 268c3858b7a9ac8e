"""Reductions and normalizations of the elements where a mask is True.

The others are replaced by what changes nothing: 0 in sums, minus infinity in maxima. The mask
broadcasts to the tensor; without one all elements count.
"""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Dims, DType, Number
from gt.ops.registry import function

NAMESPACE = "gt.masked"


def _mask(input: Tensor, mask: Tensor) -> Tensor:
    """Give a mask in the tensor's shape."""
    return mask.bool() if mask.shape == input.shape else mask.bool().broadcast_to(input.shape)


def _kept(input: Tensor, mask: Tensor | None, neutral: Number) -> Tensor:
    """Give the tensor with a number that changes nothing where the mask is False."""
    if mask is None:
        return input
    return primitives.where(_mask(input, mask), input, neutral)._cast(input.dtype)


def _lowest(input: Tensor) -> Number:
    """Give what no maximum is changed by."""
    return -math.inf if input.dtype.is_floating_point else gt.iinfo(input.dtype).min


def _highest(input: Tensor) -> Number:
    """Give what no minimum is changed by."""
    return math.inf if input.dtype.is_floating_point else gt.iinfo(input.dtype).max


def _as(result: Tensor, input: Tensor, dtype: DType | None) -> Tensor:
    """Give a result in the dtype that is asked for, else in the input's."""
    return result._cast(input.dtype if dtype is None else dtype)


def _axes(dim: Dims) -> Any:
    """Give the axes; () means all, as None does."""
    return None if dim == () else dim


@function(namespace=NAMESPACE)
def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Add up the values where the mask is True; 0 where there are none.

    >>> gt.masked.sum(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=gt.float32)
    """
    return gt.sum(_kept(input, mask, 0), _axes(dim), keepdim, dtype=dtype)


@function(namespace=NAMESPACE)
def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Multiply the values where the mask is True; 1 where there are none.

    >>> gt.masked.prod(gt.tensor([3.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(3., dtype=gt.float32)
    """
    return gt.prod(_kept(input, mask, 1), _axes(dim), keepdim, dtype=dtype)


@function(namespace=NAMESPACE)
def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Sum all values up to each along an axis, as far as the mask is True.

    >>> gt.masked.cumsum(gt.ones(3), 0, mask=gt.tensor([True, False, True]))
    tensor([1., 1., 2.], dtype=gt.float32)
    """
    return gt.cumsum(_kept(input, mask, 0), dim, dtype=input.dtype if dtype is None else dtype)


@function(namespace=NAMESPACE)
def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Multiply all values up to each along an axis, as far as the mask is True.

    >>> gt.masked.cumprod(gt.tensor([2.0, 3.0, 4.0]), 0, mask=gt.tensor([True, False, True]))
    tensor([2., 2., 8.], dtype=gt.float32)
    """
    return gt.cumprod(_kept(input, mask, 1), dim, dtype=input.dtype if dtype is None else dtype)


@function(namespace=NAMESPACE)
def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Give the largest value where the mask is True; the lowest there is where there are none.

    >>> gt.masked.amax(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=gt.float32)
    """
    found = gt.amax(_kept(input, mask, _lowest(input)), _axes(dim), keepdim)
    return _as(found, input, dtype)


@function(namespace=NAMESPACE)
def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Give the smallest value where the mask is True; the highest there is where there are none.

    >>> gt.masked.amin(gt.tensor([1.0, 2.0]), mask=gt.tensor([False, True]))
    tensor(2., dtype=gt.float32)
    """
    found = gt.amin(_kept(input, mask, _highest(input)), _axes(dim), keepdim)
    return _as(found, input, dtype)


@function(namespace=NAMESPACE)
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Give where the largest value is among those where the mask is True; in the input's dtype.

    >>> gt.masked.argmax(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]), dtype=gt.int64)
    tensor(0, dtype=gt.int64)
    """
    found = gt.argmax(_kept(input, mask, _lowest(input)), dim, keepdim)
    return _as(found, input, dtype)


@function(namespace=NAMESPACE)
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Give where the smallest value is among those where the mask is True; in the input's dtype.

    >>> gt.masked.argmin(gt.tensor([1.0, 2.0]), mask=gt.tensor([False, True]), dtype=gt.int64)
    tensor(1, dtype=gt.int64)
    """
    found = gt.argmin(_kept(input, mask, _highest(input)), dim, keepdim)
    return _as(found, input, dtype)


@function(namespace=NAMESPACE)
def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Give the middle value along an axis where the mask is True; NaN where there are none.

    >>> gt.masked.median(gt.tensor([1.0, 2.0, 9.0]), mask=gt.tensor([True, True, False]))
    tensor(1., dtype=gt.float32)
    """
    values = input if input.dtype.is_floating_point else input.float()
    found = gt.nanmedian(_kept(values, mask, math.nan), dim, keepdim).values
    return found if input.dtype.is_floating_point else _as(found, input, dtype)


@function(namespace=NAMESPACE)
def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Give the logarithm of the sum of exp(x) where the mask is True.

    >>> gt.masked.logsumexp(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=gt.float32)
    """
    axes = tuple(range(input.ndim)) if dim is None or dim == () else dim
    return _as(gt.logsumexp(_kept(input, mask, _lowest(input)), axes, keepdim), input, dtype)


@function(namespace=NAMESPACE)
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Give log(exp(x) + exp(y)), where values whose mask is False count as minus infinity.

    >>> gt.masked.logaddexp(gt.zeros(1), gt.zeros(1), input_mask=gt.tensor([False]))
    tensor([0.], dtype=gt.float32)
    """
    one, two = _kept(input, input_mask, _lowest(input)), _kept(other, other_mask, _lowest(other))
    return _as(gt.logaddexp(one, two), input, dtype)


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
    """Give the norm of the values where the mask is True, as `gt.linalg.vector_norm` does.

    >>> gt.masked.norm(gt.tensor([3.0, 4.0]), mask=gt.tensor([True, False]))
    tensor(3., dtype=gt.float32)
    """
    kept = _kept(input, mask, math.inf if ord == -math.inf else 0)
    return gt.linalg.vector_norm(kept, 2.0 if ord is None else ord, _axes(dim), keepdim, dtype=dtype)


@function(namespace=NAMESPACE)
def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Average the values where the mask is True; NaN where there are none.

    >>> gt.masked.mean(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=gt.float32)
    """
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(
        input, dim, keepdim, mask
    )


def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """Count the elements that each average is over."""
    which = gt.ones_like(input, dtype=gt.bool) if mask is None else _mask(input, mask)
    return gt.sum(which, _axes(dim), keepdim)


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
    """Give the variance of the values where the mask is True: over n - 1, or n - correction.

    >>> gt.masked.var(gt.tensor([1.0, 3.0, 9.0]), mask=gt.tensor([True, True, False]))
    tensor(2., dtype=gt.float32)
    """
    if unbiased is not None and correction is not None:
        raise ValueError("var: give unbiased or correction, which say the same, not both")
    if correction is None:
        correction = 0 if unbiased is False else 1
    wide = _spread_dtype(input, dtype)
    average = sum(input, dim, keepdim=True, dtype=wide, mask=mask) / _count(input, dim, True, mask)
    distance = input - average
    total = sum(distance * distance, dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = _count(input, dim, keepdim, mask)
    return total / gt.clamp(count - correction, min=0)._cast(wide)


def _spread_dtype(input: Tensor, dtype: DType | None) -> Any:
    if dtype is not None:
        return dtype
    return input.dtype if input.dtype.is_floating_point else gt.float32


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
    """Give the standard deviation where the mask is True: the root of the variance.

    >>> gt.masked.std(gt.tensor([1.0, 3.0, 9.0]), correction=0, mask=gt.tensor([True, True, False]))
    tensor(1., dtype=gt.float32)
    """
    spread = var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    )
    return spread.sqrt()
