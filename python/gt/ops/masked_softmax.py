"""Normalizations along an axis of the elements where a mask is True; see `masked`."""

from __future__ import annotations

import gt
from gt._gt import Tensor
from gt.ops.annotations import DType
from gt.ops.masked import NAMESPACE, highest, kept, lowest
from gt.ops.masked_averages import norm
from gt.ops.registry import function


@function(namespace=NAMESPACE)
def softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return exp(x) divided by its sum along an axis, where the mask is True; 0 elsewhere.

    >>> gt.masked.softmax(gt.zeros(3), 0, mask=gt.tensor([True, True, False]))
    tensor([0.5, 0.5, 0. ], dtype=float32)
    """
    return gt.softmax(kept(input, mask, lowest(input)), dim, dtype=dtype)


@function(namespace=NAMESPACE)
def log_softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the logarithm of softmax where the mask is True; minus infinity elsewhere.

    >>> gt.masked.log_softmax(gt.zeros(2), 0, mask=gt.tensor([True, False]))
    tensor([  0., -inf], dtype=float32)
    """
    return gt.log_softmax(kept(input, mask, lowest(input)), dim, dtype=dtype)


@function(namespace=NAMESPACE)
def softmin(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return softmax of -x where the mask is True; 0 elsewhere.

    >>> gt.masked.softmin(gt.zeros(3), 0, mask=gt.tensor([True, True, False]))
    tensor([0.5, 0.5, 0. ], dtype=float32)
    """
    return gt.softmax(-kept(input, mask, highest(input)), dim, dtype=dtype)


@function(namespace=NAMESPACE)
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Divide by the norm along an axis, or eps if it is less, where the mask is True; 0 elsewhere.

    >>> gt.masked.normalize(gt.tensor([3.0, 4.0, 9.0]), 2, 0, mask=gt.tensor([True, True, False]))
    tensor([0.6, 0.8, 0. ], dtype=float32)
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return kept(input, mask, 0) / gt.maximum(size, gt.full_like(size, eps))
