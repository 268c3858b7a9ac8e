"""Reductions in terms of others."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt._results import ValuesIndices
from gt.ops.annotations import Dims, DType
from gt.ops.registry import operation


@operation
def sum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Add up the values over axes, or over all; int64 for bool and integers.

    Args:
        input: the tensor.
        dim: the axis, or axes, that are summed over; all where none is given.
        keepdim: whether these axes stay with length 1.
        dtype: what the values are cast to first.

    >>> gt.sum(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.], dtype=gt.float32)
    """
    return primitives.sum(input if dtype is None else input._cast(dtype), dim, keepdim)


@operation
def mean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Average the values over axes, or over all.

    >>> gt.mean(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000], dtype=gt.float32)
    """
    return primitives.mean(input if dtype is None else input._cast(dtype), dim, keepdim)


@operation
def prod(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Multiply the values over axes, or over all; int64 for bool and integers.

    >>> gt.prod(gt.tensor([2.0, 3.0]))
    tensor(6., dtype=gt.float32)
    """
    return primitives.prod(input if dtype is None else input._cast(dtype), dim, keepdim)


@operation(in_place=True)
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Sum all values up to each along an axis; int64 for bool and integers.

    >>> gt.cumsum(gt.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.], dtype=gt.float32)
    """
    return primitives.cumsum(input if dtype is None else input._cast(dtype), dim)


@operation
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Give the variance over axes: squared distances from the mean over `n - correction`.

    Args:
        input: a tensor of floats.
        dim: the axis, or axes; all where none is given. `var(False)` is `var(unbiased=False)`.
        unbiased: False for a correction of 0, True for 1.
        keepdim: whether these axes stay with length 1.
        correction: the degrees of freedom that are lost; 1 where nothing is said.

    >>> gt.var(gt.tensor([1.0, 3.0]))
    tensor(2., dtype=gt.float32)
    """
    return primitives.var(*_spread("var", input, dim, unbiased, keepdim, correction))


@operation
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Give the standard deviation over axes: the root of the variance; parameters as for `var`.

    >>> gt.std(gt.tensor([1.0, 3.0]), correction=0)
    tensor(1., dtype=gt.float32)
    """
    return primitives.std(*_spread("std", input, dim, unbiased, keepdim, correction))


def _spread(name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any):
    if isinstance(dim, bool):  # PyTorch's form var(unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise ValueError(f"{name}: give unbiased or correction, which say the same, not both")
    if unbiased is not None:
        correction = int(unbiased)
    return input, dim, keepdim, 1 if correction is None else correction


@operation
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Dims = None) -> Any:
    """Give the largest value: of all, along an axis with its place, or of two tensors.

    `max()` is a tensor without axes, `max(dim)` a pair `(values, indices)`, `max(other)` the
    elementwise maximum, and `max(axis=...)`, as NumPy has it, the values alone.

    >>> gt.max(gt.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).indices
    tensor([1, 0], dtype=gt.int64)
    """
    return _extreme(
        primitives.amax, primitives.max_along, primitives.maximum, input, dim, keepdim, axis
    )


@operation
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Dims = None) -> Any:
    """Give the smallest value: of all, along an axis with its place, or of two tensors; see `max`.

    >>> gt.min(gt.tensor([3.0, 1.0]))
    tensor(1., dtype=gt.float32)
    """
    return _extreme(
        primitives.amin, primitives.min_along, primitives.minimum, input, dim, keepdim, axis
    )


def _extreme(values, along, of_two, input: Tensor, dim: Any, keepdim: bool, axis: Dims) -> Any:
    if isinstance(dim, Tensor):
        return of_two(input, dim)
    if dim is None or isinstance(dim, tuple | list):
        return values(input, axis if dim is None else dim, keepdim)
    found = along(input, dim)
    if keepdim or input.ndim == 0:
        return ValuesIndices(*found)
    return ValuesIndices(*(of.squeeze(dim) for of in found))


@operation
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Say whether any value is not zero, over axes or over all.

    >>> gt.any(gt.tensor([0.0, 2.0]))
    tensor(True, dtype=gt.bool)
    """
    found = primitives.any(input, dim, keepdim)
    return found if input.dtype != gt.uint8 else found._cast(gt.uint8)


@operation
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Say whether all values are not zero, over axes or over all.

    >>> gt.all(gt.tensor([0.0, 2.0]))
    tensor(False, dtype=gt.bool)
    """
    found = primitives.all(input, dim, keepdim)
    return found if input.dtype != gt.uint8 else found._cast(gt.uint8)


@operation
def softmax(input: Tensor, dim: int = -1, *, dtype: DType | None = None) -> Tensor:
    """Give exp(x) over its sum along an axis.

    >>> gt.softmax(gt.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000], dtype=gt.float32)
    """
    return primitives.softmax(input if dtype is None else input._cast(dtype), dim)


@operation
def log_softmax(input: Tensor, dim: int = -1, *, dtype: DType | None = None) -> Tensor:
    """Give the logarithm of softmax, exact where softmax is near 0.

    >>> gt.log_softmax(gt.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931], dtype=gt.float32)
    """
    return primitives.log_softmax(input if dtype is None else input._cast(dtype), dim)
