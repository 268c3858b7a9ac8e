"""Diagonals: viewed, replaced, and put into matrices.

In a matrix of m columns, flattened in row-major order, the diagonal is every (m + 1)th value.
"""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor, arange_beside, ones, primitives
from gt._gt import bool as _bool
from gt._gt import int64 as _int64
from gt.ops.annotations import Device, DType
from gt.ops.registry import function, operation
from gt.ops.sizes import fill_region, filled, need_axes, take_region, two_axes


def _flattened(name: str, input: Tensor, dim1: int, dim2: int) -> Tensor:
    """Move two axes to the end and flatten them into one."""
    rows, columns = two_axes(name, dim1, dim2, input.ndim)
    rest = [axis for axis in range(input.ndim) if axis not in (rows, columns)]
    last = primitives.permute(input, (*rest, rows, columns))
    return last.reshape((*last.shape[:-2], last.shape[-2] * last.shape[-1]))


def _stripe(rows: int, columns: int, offset: int) -> tuple[int, int, int]:
    """Return where a diagonal starts in the flattened matrix, its length, and the step."""
    start = offset if offset >= 0 else -offset * columns
    return start, max(min(rows + min(offset, 0), columns - max(offset, 0)), 0), columns + 1


@operation
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonal of two axes, as the last axis of the result.

    Args:
        input: a tensor of two axes or more.
        offset: how far above the main diagonal; negative for below.
        dim1: the axis of the rows.
        dim2: the axis of the columns.

    >>> gt.diagonal(gt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.], dtype=float32)
    """
    two_axes("diagonal", dim1, dim2, input.ndim)
    if input.stride(dim1) < input.stride(dim2):  # a transposed matrix is not flat in memory
        dim1, dim2, offset = dim2, dim1, -offset
    stripe = _stripe(input.size(dim1), input.size(dim2), offset)
    flat = _flattened("diagonal", input, dim1, dim2)
    if flat._is_view() or input.numel() == 0:
        return take_region(flat, flat.ndim - 1, *stripe)
    return _named_one_by_one(input, offset, dim1, dim2)


def _named_one_by_one(input: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """View a diagonal of axes that are not one stripe of memory, by listing its elements."""
    rows, columns = two_axes("diagonal", dim1, dim2, input.ndim)
    numbers = arange_beside(input, input.numel()).reshape(input.shape)
    numbers = _flattened("diagonal", numbers, rows, columns)
    stripe = _stripe(input.size(rows), input.size(columns), offset)
    places = take_region(numbers, numbers.ndim - 1, *stripe)
    stride = input.stride()
    first = input.storage_offset() + abs(offset) * stride[columns if offset > 0 else rows]
    rest = [step for axis, step in enumerate(stride) if axis not in (rows, columns)]
    strides = (*rest, stride[rows] + stride[columns])
    return input._view_at(None, places.ravel(), places.shape, strides, first)


@operation
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Replace the diagonal of two axes; parameters as for `diagonal`.

    >>> gt.diagonal_scatter(gt.zeros(2, 2), gt.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]], dtype=float32)
    """
    flat = _flattened("diagonal_scatter", input, dim1, dim2)
    rows, columns = input.size(dim1), input.size(dim2)
    stripe = _stripe(rows, columns, offset)
    if src.shape != (*flat.shape[:-1], stripe[1]):
        raise ValueError(
            f"diagonal_scatter: src is of shape {src.shape}, the diagonal of "
            f"{(*flat.shape[:-1], stripe[1])}"
        )
    filled_in = fill_region(flat, src, flat.ndim - 1, *stripe)
    return filled_in.reshape((*flat.shape[:-1], rows, columns)).movedim((-2, -1), (dim1, dim2))


@operation
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Make square matrices whose diagonals are the values along the last axis, else zeros.

    Args:
        input: a tensor of one axis or more.
        offset: how far above the main diagonal; negative for below.
        dim1: the axis of the rows in the result.
        dim2: the axis of the columns in the result.

    >>> gt.diag_embed(gt.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]], dtype=float32)
    """
    need_axes("diag_embed", input, 1)
    two_axes("diag_embed", dim1, dim2, input.ndim + 1)
    batch, n = input.shape[:-1], input.shape[-1] + abs(offset)
    zeros = filled(input, (*batch, n * n), 0)
    flat = fill_region(zeros, input, input.ndim - 1, *_stripe(n, n, offset))
    return flat.reshape((*batch, n, n)).movedim((-2, -1), (dim1, dim2))


@operation
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Make a matrix with a vector as its diagonal, or return a copy of a matrix's diagonal.

    >>> gt.diag(gt.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]], dtype=float32)
    """
    need_axes("diag", input, 1, 2)
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    return input.diagonal(diagonal).clone()


@operation
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Make a matrix whose diagonal is all values of a tensor, in row-major order.

    >>> gt.diagflat(gt.ones(1, 2))
    tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    return diag_embed(input.ravel(), offset)


@function
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device = None,
    layout: object = None,
) -> Tensor:
    """Return the row and column indices of a matrix's elements on or below a diagonal.

    >>> gt.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]], dtype=int64)
    """
    return _triangle("tril_indices", primitives.tril, row, col, offset, dtype)


@function
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device = None,
    layout: object = None,
) -> Tensor:
    """Return the row and column indices of a matrix's elements on or above a diagonal.

    >>> gt.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]], dtype=int64)
    """
    return _triangle("triu_indices", primitives.triu, row, col, offset, dtype)


def _triangle(name: str, cut: Any, row: int, col: int, offset: int, dtype: DType | None) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: row is {row} and col is {col}, expected 0 or more")
    below = sum(min(max(at + offset + 1, 0), col) for at in range(row))
    above = sum(min(max(col - at - offset, 0), col) for at in range(row))
    places = cut(ones(row, col, dtype=_bool), offset)
    count = below if cut is primitives.tril else above
    found = places.nonzero_static(size=count).t()
    return found._cast(_int64 if dtype is None else dtype)
