"""Binary search in sorted values."""

from __future__ import annotations

from gt._gt import Tensor, primitives, tensor_beside
from gt.ops.annotations import Number
from gt.ops.registry import function
from gt.ops.sizes import need_axes


@function
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return the indices at which values would be inserted into sorted ones to keep them sorted.

    It is a binary search for all values at once, with one step for each bit of the length.

    Args:
        sorted_sequence: values sorted along the last axis; either the only axis, or the axes
            before it are those of `input`.
        input: the values, or one number.
        out_int32: whether the indices are int32 instead of int64.
        right: whether a value is inserted after equal ones instead of before them.
        side: "left" or "right", another form of `right`.
        sorter: the indices that sort the sequence, if it is not sorted.

    >>> gt.searchsorted(gt.tensor([1.0, 2.0, 3.0]), gt.tensor([2.0, 2.5]))
    tensor([1, 2], dtype=int64)
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(f"searchsorted: side {side!r} contradicts right={right}, or is unknown")
    need_axes("searchsorted", sorted_sequence, 1)
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise ValueError(
                f"searchsorted: sorter of shape {sorter.shape} does not fit a sequence of shape "
                f"{sorted_sequence.shape}"
            )
        sorted_sequence = primitives.gather(sorted_sequence, -1, sorter)
    values = input if isinstance(input, Tensor) else tensor_beside(sorted_sequence, input)
    if sorted_sequence.ndim > 1 and sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"searchsorted: values of shape {values.shape} do not fit a sequence of shape "
            f"{sorted_sequence.shape}: all axes but the last must be the same"
        )
    found = places(sorted_sequence, values, right or side == "right")
    return found.int() if out_int32 else found


@function
def bucketize(
    input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return the bucket of each value: the number of boundaries below it.

    Args:
        input: the values, or one number.
        boundaries: sorted values, one axis.
        out_int32: whether the buckets are int32 instead of int64.
        right: whether a boundary itself belongs to the bucket above it.

    >>> gt.bucketize(gt.tensor([0.5, 1.0, 9.0]), gt.tensor([1.0, 2.0]))
    tensor([0, 0, 2], dtype=int64)
    """
    need_axes("bucketize", boundaries, 1, 1)
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def places(sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """Return the number of elements of a sorted sequence that precede each value."""
    length = sequence.shape[-1]
    before = primitives.cast(values != values, "int64") * 0
    step = 2 ** length.bit_length() // 2
    while step:
        probe = before + step
        at = _values_at(sequence, primitives.clamp(probe, 1, length) - 1)
        # NaN is larger than any number.
        beyond = primitives.gt(at, values) if right else primitives.ge(at, values)
        fits = primitives.logical_and(probe <= length, primitives.logical_not(beyond))
        before = primitives.where(fits, probe, before)
        step //= 2
    return before


def _values_at(sequence: Tensor, index: Tensor) -> Tensor:
    if sequence.ndim > 1:
        return primitives.gather(sequence, -1, index)
    return primitives.index_select(sequence, 0, index.reshape(-1)).reshape(index.shape)
