"""Reductions and normalizations of the elements where a mask is True.

The other elements are replaced by the neutral element: 0 in sums, minus infinity in maxima. The
mask broadcasts to the tensor; without one all elements count.
"""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Dims, DType, Number
from gt.ops.precision import float_dtype
from gt.ops.registry import function

NAMESPACE = "gt.masked"


def whole_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Expand a mask to the tensor's shape, as bool."""
    return mask.bool() if mask.shape == input.shape else mask.bool().broadcast_to(input.shape)


def kept(input: Tensor, mask: Tensor | None, neutral: Number) -> Tensor:
    """Return the tensor with a neutral number where the mask is False."""
    if mask is None:
        return input
    return primitives.where(whole_mask(input, mask), input, neutral)._cast(input.dtype)


def lowest(input: Tensor) -> Number:
    """Return the neutral element of maxima in the tensor's dtype."""
    return -math.inf if input.dtype.is_floating_point else gt.iinfo(input.dtype).min


def highest(input: Tensor) -> Number:
    """Return the neutral element of minima in the tensor's dtype."""
    return math.inf if input.dtype.is_floating_point else gt.iinfo(input.dtype).max


def cast_as(result: Tensor, input: Tensor, dtype: DType | None) -> Tensor:
    """Return a result in the dtype that is asked for, by default the input's."""
    return result._cast(input.dtype if dtype is None else dtype)


def axes_of(dim: Dims) -> Any:
    """Return the axes, with None in place of (): both mean all."""
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
    """Return the sum of the values where the mask is True; 0 if there are none.

    >>> gt.masked.sum(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=float32)
    """
    return gt.sum(kept(input, mask, 0), axes_of(dim), keepdim, dtype=dtype)


@function(namespace=NAMESPACE)
def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the product of the values where the mask is True; 1 if there are none.

    >>> gt.masked.prod(gt.tensor([3.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(3., dtype=float32)
    """
    return gt.prod(kept(input, mask, 1), axes_of(dim), keepdim, dtype=dtype)


@function(namespace=NAMESPACE)
def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return cumulative sums along an axis of the values where the mask is True.

    >>> gt.masked.cumsum(gt.ones(3), 0, mask=gt.tensor([True, False, True]))
    tensor([1., 1., 2.], dtype=float32)
    """
    return cast_as(gt.cumsum(kept(input, mask, 0), dim, dtype=dtype), input, dtype)


@function(namespace=NAMESPACE)
def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return cumulative products along an axis of the values where the mask is True.

    >>> gt.masked.cumprod(gt.tensor([2.0, 3.0, 4.0]), 0, mask=gt.tensor([True, False, True]))
    tensor([2., 2., 8.], dtype=float32)
    """
    return cast_as(gt.cumprod(kept(input, mask, 1), dim, dtype=dtype), input, dtype)


@function(namespace=NAMESPACE)
def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the largest value where the mask is True; if there are none, the dtype's lowest.

    >>> gt.masked.amax(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=float32)
    """
    found = gt.amax(kept(input, mask, lowest(input)), axes_of(dim), keepdim)
    return cast_as(found, input, dtype)


@function(namespace=NAMESPACE)
def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the smallest value where the mask is True; if there are none, the dtype's highest.

    >>> gt.masked.amin(gt.tensor([1.0, 2.0]), mask=gt.tensor([False, True]))
    tensor(2., dtype=float32)
    """
    found = gt.amin(kept(input, mask, highest(input)), axes_of(dim), keepdim)
    return cast_as(found, input, dtype)


@function(namespace=NAMESPACE)
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the largest value where the mask is True; in the input's dtype.

    >>> gt.masked.argmax(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]), dtype=gt.int64)
    tensor(0, dtype=int64)
    """
    found = gt.argmax(kept(input, mask, lowest(input)), dim, keepdim)
    return cast_as(found, input, dtype)


@function(namespace=NAMESPACE)
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the smallest value where the mask is True; in the input's dtype.

    >>> gt.masked.argmin(gt.tensor([1.0, 2.0]), mask=gt.tensor([False, True]), dtype=gt.int64)
    tensor(1, dtype=int64)
    """
    found = gt.argmin(kept(input, mask, highest(input)), dim, keepdim)
    return cast_as(found, input, dtype)


@function(namespace=NAMESPACE)
def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the logarithm of the sum of exp(x) where the mask is True.

    >>> gt.masked.logsumexp(gt.tensor([1.0, 2.0]), mask=gt.tensor([True, False]))
    tensor(1., dtype=float32)
    """
    axes = tuple(range(input.ndim)) if dim is None or dim == () else dim
    values = input._cast(float_dtype(input))
    return cast_as(gt.logsumexp(kept(values, mask, -math.inf), axes, keepdim), input, dtype)


@function(namespace=NAMESPACE)
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return log(exp(x) + exp(y)), where values whose mask is False count as minus infinity.

    >>> gt.masked.logaddexp(gt.zeros(1), gt.zeros(1), input_mask=gt.tensor([False]))
    tensor([0.], dtype=float32)
    """
    one, two = kept(input, input_mask, lowest(input)), kept(other, other_mask, lowest(other))
    return cast_as(gt.logaddexp(one, two), input, dtype)
