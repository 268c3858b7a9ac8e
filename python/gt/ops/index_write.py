"""Writing slices, or values at coordinates, at given indices."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, element_of, primitives
from gt.ops.annotations import Number
from gt.ops.index import _within
from gt.ops.registry import function, operation
from gt.ops.scatter import scatter_reduce
from gt.ops.sizes import axis_of, filled, need_axes, need_index


def _rows(
    name: str, input: Tensor, dim: int, index: Tensor, source: Tensor
) -> tuple[Tensor, int, Tensor, Tensor]:
    """Check that the operands fit, and return them with at least one axis each."""
    need_index(name, index)
    need_axes(name, index, 0, 1)
    at, length = axis_of(name, dim, input.ndim), index.numel()
    whole, source_rows = input.reshape(input.shape or 1), source.reshape(source.shape or 1)
    expected = (*whole.shape[:at], length, *whole.shape[at + 1 :])
    if source_rows.shape != expected:
        raise ValueError(f"{name}: source is of shape {source.shape}, expected {expected}")
    return whole, at, index.reshape(length), source_rows


@operation(in_place=True)
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1
) -> Tensor:
    """Add slices of `alpha * source` along an axis at given indices.

    >>> gt.index_add(gt.zeros(3), 0, gt.tensor([0, 0], dtype=gt.int64), gt.ones(2))
    tensor([2., 0., 0.], dtype=float32)
    """
    whole, at, index, source = _rows("index_add", input, dim, index, source)
    source = source if alpha == 1 else source * alpha
    return primitives.index_add(whole, at, index, source).reshape(input.shape)


@operation(in_place=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Replace slices along an axis at given indices; the last of equal indices wins.

    >>> gt.index_copy(gt.zeros(3), 0, gt.tensor([2, 0], dtype=gt.int64), gt.tensor([1.0, 2.0]))
    tensor([2., 0., 1.], dtype=float32)
    """
    whole, at, index, source = _rows("index_copy", input, dim, index, source)
    return primitives.index_copy(whole, at, index, source).reshape(input.shape)


@operation(in_place=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """Replace slices along an axis at given indices by one value.

    >>> gt.index_fill(gt.zeros(3), 0, gt.tensor([-1], dtype=gt.int64), 5)
    tensor([0., 0., 5.], dtype=float32)
    """
    need_index("index_fill", index)
    if not isinstance(value, Tensor):
        value = filled(input, (), element_of("index_fill", value, input.dtype))
    need_axes("index_fill", value, 0, 0)
    at, whole = axis_of("index_fill", dim, input.ndim), input.reshape(input.shape or 1)
    place = primitives.wrap_index(index.ravel(), whole.shape[at])
    named = filled(input, (whole.shape[at],), False, gt.bool)
    named = primitives.index_copy(named, 0, place, filled(named, place.shape, True))
    named = named.reshape((-1,) + (1,) * (whole.ndim - at - 1))
    return whole.masked_fill(named, value).reshape(input.shape)


@operation(in_place=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Combine all slices that have the same index along an axis.

    Args:
        input: the tensor.
        dim: the axis.
        index: int64 or int32.
        source: a slice for each entry of the index.
        reduce: "prod", "mean", "amax" or "amin"; see `scatter_reduce`.
        include_self: whether the tensor's own slice counts where there are others.

    >>> index = gt.tensor([0, 0], dtype=gt.int64)
    >>> gt.index_reduce(gt.ones(2), 0, index, gt.tensor([3.0, 5.0]), "prod")
    tensor([15.,  1.], dtype=float32)
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ValueError(
            f"index_reduce: reduce is '{reduce}', expected 'prod', 'mean', 'amax' or 'amin'"
        )
    whole, at, index, source = _rows("index_reduce", input, dim, index, source)
    index = index.reshape((-1,) + (1,) * (whole.ndim - at - 1)).expand(source.shape)
    reduced = scatter_reduce(whole, at, index, source, reduce, include_self=include_self)
    return reduced.reshape(input.shape)


@operation(in_place=True, autocast="widest")
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Replace the values that `input[indices]` selects: `input[indices] = values`.

    Args:
        input: the tensor.
        indices: a tuple of tensors: integers, which broadcast, or masks.
        values: the new values; broadcast.
        accumulate: whether to add instead; each of several equal indices then counts.

    >>> gt.index_put(gt.zeros(3), (gt.tensor([0, 0], dtype=gt.int64),), gt.ones(2), accumulate=True)
    tensor([2., 0., 0.], dtype=float32)
    """
    if values.dtype != input.dtype:
        raise TypeError(
            f"index_put: values are of dtype {values.dtype}, expected {input.dtype}, input's"
        )
    key: tuple[Any, ...] = tuple(slice(None) if index is None else index for index in indices)
    axes = sum(of.ndim if getattr(of, "dtype", None) == gt.bool else 1 for of in key)
    lead, rest = input.shape[:axes], input.shape[axes:]
    places = arange_beside(input, math.prod(lead)).reshape(lead)[key]
    rows = values.expand((*places.shape, *rest)).reshape((places.numel(), *rest))
    write = primitives.index_add if accumulate else primitives.index_copy
    flat = input.reshape((math.prod(lead), *rest))
    return write(flat, 0, places.ravel(), rows).reshape(input.shape)


@function
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Any, values: Tensor
) -> Tensor:
    """Add the values at indices where a mask is True.

    >>> where = gt.tensor([True, False])
    >>> gt._unsafe_masked_index_put_accumulate(gt.ones(2), where, [gt.arange(2)], gt.ones(2))
    tensor([2., 1.], dtype=float32)
    """
    added = values.masked_fill(~mask, 0)
    return index_put(input, _within(input, indices), added, accumulate=True)
