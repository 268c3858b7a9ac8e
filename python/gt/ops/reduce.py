"""Composite reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt._results import MinMax, ValuesIndices
from gt.ops.annotations import Dims, DType
from gt.ops.registry import operation


def _in(dtype: DType | None, compute: Callable[..., Tensor], input: Tensor, *given: Any) -> Tensor:
    """Compute in the given dtype, which the result has too; without one, in the default one."""
    if dtype is None:
        return compute(input, *given)
    return compute(input._cast(dtype), *given)._cast(dtype)


@operation(direct=True, autocast="float32")
def sum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the sum over axes, or of all values; int64 for bool and integers.

    Args:
        input: the tensor.
        dim: the axis or axes that are summed over; all by default.
        keepdim: whether these axes are kept with length 1.
        dtype: the dtype that the values are cast to first.

    >>> gt.sum(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.], dtype=float32)
    """
    return _in(dtype, primitives.sum, input, dim, keepdim)


@operation(direct=True)
def mean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the mean over axes, or of all values.

    Args:
        input: the tensor.
        dim: the axis or axes; all by default.
        keepdim: whether these axes are kept with length 1.
        dtype: the dtype that the values are cast to first.

    >>> gt.mean(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5, 3.5], dtype=float32)
    """
    return _in(dtype, primitives.mean, input, dim, keepdim)


@operation(direct=True, autocast="float32")
def prod(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the product over axes, or of all values; int64 for bool and integers.

    Args:
        input: the tensor.
        dim: the axis or axes; all by default.
        keepdim: whether these axes are kept with length 1.
        dtype: the dtype that the values are cast to first.

    >>> gt.prod(gt.tensor([2.0, 3.0]))
    tensor(6., dtype=float32)
    """
    return _in(dtype, primitives.prod, input, dim, keepdim)


@operation(in_place=True, direct=True, autocast="float32")
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Return cumulative sums along an axis; int64 for bool and integers.

    >>> gt.cumsum(gt.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.], dtype=float32)
    """
    return _in(dtype, primitives.cumsum, input, dim)


@operation(in_place=True, direct=True, autocast="float32")
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Return cumulative products along an axis; int64 for bool and integers.

    >>> gt.cumprod(gt.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.], dtype=float32)
    """
    return _in(dtype, primitives.cumprod, input, dim)


@operation(autocast="float32")
def nansum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the sum of the values that are not NaN; int64 for bool and integers.

    >>> gt.nansum(gt.tensor([1.0, float("nan"), 2.0]))
    tensor(3., dtype=float32)
    """
    given = input if dtype is None else input._cast(dtype)
    if given.dtype.is_floating_point:
        given = primitives.where(given.isnan(), 0, given)
    return primitives.sum(given, dim, keepdim)


@operation
def nanmean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the mean of the values that are not NaN; NaN if there are none.

    >>> gt.nanmean(gt.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5, dtype=float32)
    """
    if not input.dtype.is_floating_point:
        raise TypeError(f"nanmean: expected floats, not {input.dtype.name}")
    given = input if dtype is None else input._cast(dtype)
    wide = given.float() if given.dtype.itemsize == 2 else given
    count = primitives.sum(primitives.logical_not(wide.isnan()), dim, keepdim)
    return (nansum(wide, dim, keepdim) / count)._cast(given.dtype)


@operation
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Count the nonzero values, over axes or over all.

    >>> gt.count_nonzero(gt.tensor([0.0, 2.0, 3.0]))
    tensor(2, dtype=int64)
    """
    return primitives.sum(input != 0, dim)


@operation
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """Return the smallest and the largest value, of all or along an axis.

    >>> gt.aminmax(gt.tensor([3.0, 1.0, 2.0])).max
    tensor(3., dtype=float32)
    """
    return MinMax(primitives.amin(input, dim, keepdim), primitives.amax(input, dim, keepdim))


@operation
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Dims = None) -> Any:
    """Return the largest value: of all, along an axis with its index, or of two tensors.

    `max()` is a tensor without axes, `max(dim)` a pair `(values, indices)`, `max(other)` the
    elementwise maximum, and `max(axis=...)`, as in NumPy, the values alone.

    Args:
        input: the tensor.
        dim: the axis, or the other tensor.
        keepdim: whether the axis is kept with length 1.
        axis: NumPy's name: one axis or several.

    >>> gt.max(gt.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).indices
    tensor([1, 0], dtype=int64)
    """
    return _extreme(
        primitives.amax, primitives.max_along, primitives.maximum, input, dim, keepdim, axis
    )


@operation
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Dims = None) -> Any:
    """Return the smallest value: of all, along an axis with its index, or of two tensors.

    >>> gt.min(gt.tensor([3.0, 1.0]))
    tensor(1., dtype=float32)
    """
    return _extreme(
        primitives.amin, primitives.min_along, primitives.minimum, input, dim, keepdim, axis
    )


def _extreme(
    values: Callable[..., Tensor],
    along: Callable[..., Any],
    of_two: Callable[..., Tensor],
    input: Tensor,
    dim: Any,
    keepdim: bool,
    axis: Dims,
) -> Any:
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
    """Return whether any value is nonzero, over axes or over all.

    Args:
        input: the tensor.
        dim: the axis or axes; all by default.
        keepdim: whether these axes are kept with length 1.

    >>> gt.any(gt.tensor([0.0, 2.0]))
    tensor(True, dtype=bool)
    """
    found = input != 0 if _is_empty(dim) else primitives.any(input, dim, keepdim)
    return found if input.dtype != gt.uint8 else found._cast(gt.uint8)


@operation
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether all values are nonzero, over axes or over all.

    Args:
        input: the tensor.
        dim: the axis or axes; all by default.
        keepdim: whether these axes are kept with length 1.

    >>> gt.all(gt.tensor([0.0, 2.0]))
    tensor(False, dtype=bool)
    """
    found = input != 0 if _is_empty(dim) else primitives.all(input, dim, keepdim)
    return found if input.dtype != gt.uint8 else found._cast(gt.uint8)


def _is_empty(dim: Dims) -> bool:
    """Return whether `dim` is an empty list of axes, for which `any` and `all` reduce nothing."""
    return isinstance(dim, tuple | list) and not dim


@operation(autocast="float32")
def softmax(input: Tensor, dim: int = -1, *, dtype: DType | None = None) -> Tensor:
    """Return exp(x) divided by its sum along an axis.

    Args:
        input: floats.
        dim: the axis.
        dtype: the dtype that the values are cast to first.

    >>> gt.softmax(gt.tensor([0.0, 0.0]), dim=0)
    tensor([0.5, 0.5], dtype=float32)
    """
    return primitives.softmax(input if dtype is None else input._cast(dtype), dim)


@operation(autocast="float32")
def log_softmax(input: Tensor, dim: int = -1, *, dtype: DType | None = None) -> Tensor:
    """Return the logarithm of softmax, accurate even where softmax is near 0.

    >>> gt.log_softmax(gt.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931472, -0.6931472], dtype=float32)
    """
    return primitives.log_softmax(input if dtype is None else input._cast(dtype), dim)
