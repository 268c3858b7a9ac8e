"""Reading values at indices that other tensors hold."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, primitives
from gt.ops.annotations import Number, Size
from gt.ops.registry import extend_tensor, function, operation
from gt.ops.sizes import axis_of, filled, ints, need_index


@operation
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return values at indices along an axis: `out[i][j] = input[index[i][j]][j]` for dim 0.

    Args:
        input: the tensor.
        dim: the axis that the indices count along.
        index: int64 or int32; no longer than the tensor along the other axes.
        sparse_grad: accepted and without effect.

    >>> gt.gather(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, gt.tensor([[1], [0]], dtype=gt.int64))
    tensor([[2.],
            [3.]], dtype=float32)
    """
    if index.numel() == 0:
        return input.ravel()[:0].reshape(index.shape)
    if input.ndim and index.ndim:
        return primitives.gather(input, dim, index)
    axis_of("gather", dim, input.ndim)
    found = primitives.gather(input.reshape(input.shape or 1), 0, index.reshape(index.shape or 1))
    return found.reshape(index.shape)


@operation
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return slices along an axis in the order of an index.

    >>> gt.index_select(gt.tensor([1.0, 2.0, 3.0]), 0, gt.tensor([2, 0], dtype=gt.int64))
    tensor([3., 1.], dtype=float32)
    """
    index = index.reshape(1) if index.ndim == 0 else index
    if input.ndim:
        return primitives.index_select(input, dim, index)
    axis_of("index_select", dim, 0)
    return primitives.index_select(input.reshape(1), 0, index).reshape(())


@operation
def take(input: Tensor, index: Tensor) -> Tensor:
    """Return values at indices into the flattened tensor, in row-major order.

    >>> gt.take(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), gt.tensor([0, -1], dtype=gt.int64))
    tensor([1., 4.], dtype=float32)
    """
    need_index("take", index)
    places = primitives.wrap_index(index.ravel(), input.numel())
    return primitives.index_select(input.ravel(), 0, places).reshape(index.shape)


@operation
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return values at indices along an axis, such as those of `argsort`; other axes broadcast.

    Args:
        input: the tensor.
        indices: int64 or int32.
        dim: the axis; without it, both tensors are flattened.

    >>> gt.take_along_dim(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), gt.tensor([[1]], dtype=gt.int64), 1)
    tensor([[2.],
            [4.]], dtype=float32)
    """
    need_index("take_along_dim", indices, "indices")
    if dim is None:
        return take_along_dim(input.ravel(), indices.ravel(), 0)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            f"take_along_dim: input of shape {input.shape} and indices of shape {indices.shape} "
            "must have the same number of axes"
        )
    at = axis_of("take_along_dim", dim, input.ndim)
    shapes = [(*of.shape[:at], 1, *of.shape[at + 1 :]) for of in (input, indices)]
    shape = list(gt.broadcast_shapes(*shapes))
    shape[at] = indices.shape[at]
    places = primitives.wrap_index(indices, input.shape[at]).expand(shape)
    shape[at] = input.shape[at]
    return gather(input.expand(shape), at, places)


@operation
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the values where a mask is True; both broadcast. Waits for their number.

    >>> gt.masked_select(gt.tensor([1.0, 2.0]), gt.tensor([False, True]))
    tensor([2.], dtype=float32)
    """
    if mask.dtype != gt.bool:
        raise TypeError(f"masked_select: mask is of dtype {mask.dtype}, expected bool")
    input, mask = gt.broadcast_tensors(input, mask)
    return input[mask] if input.ndim else input.reshape(1)[mask.reshape(1)]


_nonzero = Tensor.nonzero


@operation
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of the values that are not zero, a row for each. Waits for their number.

    Args:
        input: the tensor.
        as_tuple: whether to return a vector for each axis instead, which together are an index.

    >>> gt.nonzero(gt.tensor([0.0, 5.0, 6.0]))
    tensor([[1],
            [2]], dtype=int64)
    """
    return _nonzero(input.reshape(input.shape or 1)).unbind(1) if as_tuple else _nonzero(input)


@operation
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the values that are not zero, a row for each. Waits for their number.

    >>> gt.argwhere(gt.tensor([0.0, 5.0, 6.0]))
    tensor([[1],
            [2]], dtype=int64)
    """
    return _nonzero(input)


@operation
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the indices of the first `size` values that are not zero, a row for each.

    Unlike `nonzero` it waits for nothing. Each index is stored at the row that equals the number
    of nonzero values before it.

    Args:
        input: the tensor.
        size: the number of rows.
        fill_value: the value of unused rows.

    >>> gt.nonzero_static(gt.tensor([0.0, 5.0, 6.0]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]], dtype=int64)
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: size is {size}, expected 0 or more")
    found = input.ravel() != 0
    row = gt.where(found, (found.cumsum(0) - 1).clamp(max=size), size)
    rows = filled(row, (size + 1,), 0).index_copy(0, row, arange_beside(input, input.numel()))
    used = arange_beside(input, size) < found.sum()
    places = unravel_index(rows[:size], input.shape)
    columns = [gt.where(used, place, fill_value) for place in places]
    return gt.stack(columns, 1) if columns else rows[:size].reshape(size, 1)[:, :0]


@function
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Return `input` where the condition is True and `other` elsewhere; all three broadcast.

    With the condition alone, return the indices of its nonzero values: `nonzero(as_tuple=True)`.

    >>> gt.where(gt.tensor([True, False]), 1.0, gt.zeros(2))
    tensor([1., 0.], dtype=float32)
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if isinstance(condition, Tensor) and condition.dtype == gt.uint8:
        condition = condition.bool()
    return primitives.where(condition, input, other)


def _where(self: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    """Return the tensor's values where a condition is True and `other` elsewhere."""
    return where(condition, self, other)


extend_tensor(where=_where)


@function
def unravel_index(indices: Tensor, shape: Size) -> tuple[Tensor, ...]:
    """Return the index along each axis for indices into the flattened tensor, in row-major order.

    >>> gt.unravel_index(gt.tensor([5], dtype=gt.int64), (2, 3))
    (tensor([1], dtype=int64), tensor([2], dtype=int64))
    """
    if indices.dtype.is_floating_point or indices.dtype == gt.bool:
        raise TypeError(f"unravel_index: indices are of dtype {indices.dtype}, expected integers")
    shape, indices = ints(shape), indices.long()
    if min(shape, default=0) < 0:
        raise ValueError(f"unravel_index: shape {shape} has a length below 0")
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return tuple(
        indices // max(step, 1) % max(length, 1) for step, length in zip(steps, shape, strict=True)
    )


@function
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Number) -> Tensor:
    """Return the values at indices where a mask is True, a number elsewhere.

    >>> gt._unsafe_masked_index(gt.ones(2), gt.tensor([True, False]), [gt.arange(2)], 0)
    tensor([1., 0.], dtype=float32)
    """
    return input[_within(input, indices)].masked_fill(~mask, fill)


def _within(input: Tensor, indices: Any) -> tuple[Any, ...]:
    """Clamp indices to the lengths of their axes; None stands for a whole axis."""
    return tuple(
        slice(None) if index is None else index.clamp(0, length - 1)
        for index, length in zip(indices, input.shape, strict=False)
    )
