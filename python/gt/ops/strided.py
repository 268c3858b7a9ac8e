"""Views by strides, as if the values were in memory in row-major order, and sliding windows."""

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
    """Give the values at `storage_offset + i * stride[0] + j * stride[1] + ...`.

    A tensor's values count from its first one, in row-major order.

    Args:
        input: the tensor.
        size: the shape of the result.
        stride: for each axis, how many values apart its elements are.
        storage_offset: where the first one is; 0 where none is given.

    >>> gt.as_strided(gt.arange(6), (2, 2), (3, 1))
    tensor([[0, 1],
            [3, 4]], dtype=int64)
    """
    size, stride, start = _strides("as_strided", input, size, stride, storage_offset)
    view = _blocks(input.ravel(), size, stride, start)
    if view is not None:
        return view
    places = _places(input, size, stride, start)
    return input.ravel().index_select(0, places.ravel()).reshape(size)


@operation
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Size, stride: Size, storage_offset: int | None = None
) -> Tensor:
    """Replace the values that `as_strided` gives.

    >>> gt.as_strided_scatter(gt.zeros(4), gt.ones(2), (2,), (2,), 1)
    tensor([0., 1., 0., 1.], dtype=float32)
    """
    size, stride, start = _strides("as_strided_scatter", input, size, stride, storage_offset)
    if src.shape != size:
        raise ValueError(f"as_strided_scatter: src is of shape {src.shape}, expected {size}")
    places = _places(input, size, stride, start).ravel()
    source = src.ravel()._cast(input.dtype)
    return primitives.index_copy(input.ravel(), 0, places, source).reshape(input.shape)


def _strides(
    name: str, input: Tensor, size: Size, stride: Size, start: int | None
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Check that all places are within a tensor."""
    size, stride, start = ints(size), ints(stride), start or 0
    if len(size) != len(stride) or min((*size, *stride, start)) < 0:
        raise RuntimeError(
            f"{name}: size {size} and stride {stride} must have the same length, and no number, as "
            f"the offset {start}, may be less than 0"
        )
    last = start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if 0 not in size and last >= input.numel():
        raise RuntimeError(
            f"{name}: size {size}, stride {stride} and offset {start} reach place {last}, the "
            f"tensor of shape {input.shape} has {input.numel()}"
        )
    return size, stride, start


def _places(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], start: int) -> Tensor:
    """Give the place of each element among the values."""
    places = arange_beside(input, 1).reshape((1,) * len(size)) + start
    for at, (n, step) in enumerate(zip(size, stride, strict=True)):
        along = arange_beside(input, n).reshape((n,) + (1,) * (len(size) - at - 1))
        places = places + along * step
    return places.reshape(size)


def _blocks(
    flat: Tensor, size: tuple[int, ...], stride: tuple[int, ...], start: int
) -> Tensor | None:
    """View the values as rows of equal length, these again as rows, and so on.

    Each axis, the one with the longest stride first, is the number of rows; a row is as long as its
    stride. None where the rows overlap or one is not complete.
    """
    order = sorted((at for at, n in enumerate(size) if n != 1), key=lambda at: -stride[at])
    if 0 in size or any(stride[at] == 0 for at in order):
        return None
    view, dim = flat, 0
    for at in order:
        n, step, length = size[at], stride[at], view.shape[dim]
        if at == order[-1]:
            view = (
                take_region(view, dim, start, n, step)
                if step * n > n
                else view.narrow(dim, start, n)
            )
            break
        column = start % step
        reach = column + sum((size[to] - 1) * stride[to] for to in order[dim + 1 :])
        first = start - column
        if reach >= step or first + n * step > length:
            return None
        view = view.narrow(dim, first, n * step).reshape((*view.shape[:dim], n, step))
        dim, start = dim + 1, column
    if not order:
        view = flat.narrow(0, start, 1)
    back = sorted(range(len(order)), key=lambda place: order[place])
    return (view.permute(back) if order else view).reshape(size)


@method
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Give all windows of a length along an axis, from one to the next `step` on, as a last axis.

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
    if size <= step and count * step <= length:  # no window overlaps with another: a view
        rows = flat.narrow(at, 0, count * step)
        rows = rows.reshape((*flat.shape[:at], count, step, *flat.shape[at + 1 :]))
        windows = rows.narrow(at + 1, 0, size)
    else:
        first = arange_beside(input, count).reshape(count, 1) * step
        places = (first + arange_beside(input, size)).ravel()
        windows = flat.index_select(at, places)
        windows = windows.reshape((*flat.shape[:at], count, size, *flat.shape[at + 1 :]))
    windows = windows.movedim(at + 1, -1)
    return windows if input.ndim else windows.reshape(size)
