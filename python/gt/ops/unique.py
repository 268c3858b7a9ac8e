"""The distinct values of a tensor."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, primitives
from gt.ops.registry import operation
from gt.ops.sizes import axis_of, filled, need_axes


@operation
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct values, sorted. Waits for their number.

    Args:
        input: the tensor.
        sorted: accepted; the values are always sorted.
        return_inverse: whether to also return the index in the result of each input value.
        return_counts: whether to also return the number of occurrences of each value.
        dim: the axis whose slices are compared, in lexicographic order; by default the values of
            the flattened tensor.

    >>> gt.unique(gt.tensor([3.0, 1.0, 3.0]))
    tensor([1., 3.], dtype=float32)
    """
    need_axes("unique", input, 0 if dim is None else 1)
    at = 0 if dim is None else axis_of("unique", dim, input.ndim)
    slices = input.ravel() if dim is None else input.movedim(at, 0)
    if slices.ndim == 1:
        ordered, order = primitives.sort(slices, 0)
    else:
        order = _order(slices.reshape((slices.shape[0], math.prod(slices.shape[1:]))))
        ordered = slices.index_select(0, order)
    values, inverse, counts = unique_consecutive(ordered, True, True, dim=0)
    back = inverse.index_copy(0, order, inverse)
    results = [values.movedim(0, at)]
    if return_inverse:
        results.append(back.reshape(input.shape) if dim is None else back)
    if return_counts:
        results.append(counts)
    return tuple(results) if len(results) > 1 else results[0]


def _order(rows: Tensor) -> Tensor:
    """Return the lexicographic order of rows, by stable sorts from the last column to the first."""
    order = arange_beside(rows, rows.shape[0])
    for column in reversed(rows.unbind(1)):
        order = order[primitives.sort(column[order], 0)[1]]
    return order


@operation
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Remove values that are equal to the one before. Waits for the number that remains.

    Args:
        input: the tensor.
        return_inverse: whether to also return the index in the result of each input value.
        return_counts: whether to also return the number of values that each one stands for.
        dim: the axis whose slices are compared; by default the values of the flattened tensor.

    >>> gt.unique_consecutive(gt.tensor([1.0, 1.0, 2.0, 1.0]))
    tensor([1., 2., 1.], dtype=float32)
    """
    need_axes("unique_consecutive", input, 0 if dim is None else 1)
    at = 0 if dim is None else axis_of("unique_consecutive", dim, input.ndim)
    slices = input.ravel() if dim is None else input.movedim(at, 0)
    length = slices.shape[0]
    changes = slices[1:] != slices[:-1]
    changes = changes.flatten(1).any(1) if changes.ndim > 1 else changes
    starts = gt.cat([filled(slices, (min(length, 1),), True, gt.bool), changes])
    places = starts.nonzero().reshape(-1)
    values = slices.index_select(0, places).movedim(0, at)
    results = [values]
    if return_inverse:
        inverse = starts.cumsum(0) - 1
        results.append(inverse.reshape(input.shape) if dim is None else inverse)
    if return_counts:
        ends = gt.cat([places, arange_beside(input, length + 1)[-1:]])
        results.append(ends[1:] - ends[:-1])
    return tuple(results) if len(results) > 1 else results[0]
