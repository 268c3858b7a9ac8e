"""Views by strides into a tensor's memory, and sliding windows."""

from __future__ import annotations

from gt._gt import Tensor, arange_beside, primitives
from gt.ops.annotations import Size
from gt.ops.registry import operation
from gt.ops.sizes import axis_of, changing_shape, ints, method, take_region


@changing_shape
@operation
def as_strided(
    input: Tensor, size: Size, stride: Size, storage_offset: int | None = None
) -> Tensor:
    """View the elements at `storage_offset + i * stride[0] + j * stride[1] + ...` in memory.

    Only the elements of a view can be reached, not the rest of its memory; they must have no gaps.
    If elements overlap, the result cannot be changed in place.

    Args:
        input: the tensor.
        size: the shape of the result.
        stride: the distance of neighbours along each axis, in elements.
        storage_offset: the position of the first element; the tensor's own offset by default.

    >>> gt.as_strided(gt.arange(6), (2, 2), (3, 1))
    tensor([[0, 1],
            [3, 4]], dtype=int64)
    """
    size, stride, start = _strides("as_strided", input, size, stride, storage_offset)
    return _in_memory("as_strided", input)[0]._restride(size, stride, start)


@operation
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Size, stride: Size, storage_offset: int | None = None
) -> Tensor:
    """Replace the elements that `as_strided` views.

    >>> gt.as_strided_scatter(gt.zeros(4), gt.ones(2), (2,), (2,), 1)
    tensor([0., 1., 0., 1.], dtype=float32)
    """
    size, stride, start = _strides("as_strided_scatter", input, size, stride, storage_offset)
    if src.shape != size:
        raise ValueError(f"as_strided_scatter: src is of shape {src.shape}, expected {size}")
    memory, back = _in_memory("as_strided_scatter", input)
    places = _places(input, size, stride, start).ravel()
    source = src.ravel()._cast(input.dtype)
    changed = primitives.index_copy(memory.ravel(), 0, places, source)
    return changed.reshape(memory.shape).permute(back)


def _in_memory(name: str, input: Tensor) -> tuple[Tensor, list[int]]:
    """Return the tensor with axes in the order of memory, and the permutation back."""
    order = sorted(range(input.ndim), key=lambda axis: -input.stride(axis))
    memory = input.permute(order)
    if not memory.is_contiguous():
        raise RuntimeError(
            f"{name}: a tensor of shape {input.shape} with strides {input.stride()} has gaps in "
            "memory\n  hint: contiguous() copies it"
        )
    return memory, sorted(range(input.ndim), key=lambda place: order[place])


def _strides(
    name: str, input: Tensor, size: Size, stride: Size, offset: int | None
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return size, stride and start relative to the tensor's offset; check that they are inside."""
    size, stride = ints(size), ints(stride)
    if len(size) != len(stride) or min((*size, *stride), default=0) < 0:
        raise RuntimeError(
            f"{name}: size {size} and stride {stride} must be equally long, and without numbers "
            "below 0"
        )
    start = 0 if offset is None else offset - input.storage_offset()
    last = start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if start < 0 or (0 not in size and last >= input.numel()):
        raise RuntimeError(
            f"{name}: size {size}, stride {stride} and offset {offset} reach elements {start} to "
            f"{last}, the tensor of shape {input.shape} has 0 to {input.numel() - 1}"
        )
    return size, stride, start


def _places(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Tensor:
    """Return the index of each element into the flattened tensor."""
    places = arange_beside(input, 1).reshape((1,) * len(size)) + start
    for at, (n, step) in enumerate(zip(size, stride, strict=True)):
        along = arange_beside(input, n).reshape((n,) + (1,) * (len(size) - at - 1))
        places = places + along * step
    return places.reshape(size)


@method
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """View all windows of a length along an axis, `step` apart, as a last axis.

    If windows overlap, the result cannot be changed in place.

    Args:
        dimension: the axis.
        size: the length of a window.
        step: the distance from one window to the next.

    >>> gt.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]], dtype=int64)
    """
    at, flat = axis_of("unfold", dimension, input.ndim), input.reshape(input.shape or 1)
    length = flat.shape[at]
    if not 0 <= size <= length or step < 1:
        raise RuntimeError(
            f"unfold: windows of length {size} in steps of {step} do not fit axis {dimension} of "
            f"shape {input.shape}"
        )
    count = (length - size) // step + 1
    if size == 1:
        windows = take_region(flat, at, 0, count, step).unsqueeze(at + 1)
    elif size <= step and count * step <= length:  # the windows are the starts of rows
        rows = flat.narrow(at, 0, count * step)
        rows = rows.reshape((*flat.shape[:at], count, step, *flat.shape[at + 1 :]))
        windows = rows.narrow(at + 1, 0, size)
    else:
        first = arange_beside(input, count).reshape(count, 1) * step
        places = (first + arange_beside(input, size)).ravel()
        shape, stride = list(flat.shape), list(flat.stride())
        shape[at : at + 1], stride[at : at + 1] = (count, size), (step * stride[at], stride[at])
        windows = flat._view_at(at, places, shape, stride, flat.storage_offset())
    windows = windows.movedim(at + 1, -1)
    return windows if input.ndim else windows.reshape(size)
