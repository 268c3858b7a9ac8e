"""Slices along an axis, viewed and replaced; and in-place filling and resizing."""

from __future__ import annotations

import builtins
import math
from typing import Any

from gt import _gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Number, Size
from gt.ops.registry import function, operation
from gt.ops.repeat import constant_pad_nd
from gt.ops.sizes import (
    axis_of,
    fill_region,
    ints,
    method,
    need_axes,
    need_index,
    region,
    take_region,
    whole_region,
)


@operation
def select(input: Tensor, dim: int, index: int | Tensor) -> Tensor:
    """Return a view of one slice along an axis, without that axis.

    If the index is a tensor, it is not fetched, and the slice is a copy.

    Args:
        input: the tensor.
        dim: the axis.
        index: the position, from the back if below 0.

    >>> gt.select(gt.arange(4).reshape(2, 2), 1, 0)
    tensor([0, 2], dtype=int64)
    """
    need_axes("select", input, 1)
    at = axis_of("select", dim, input.ndim)
    if isinstance(index, Tensor):
        need_index("select", index)
        place = primitives.wrap_index(index.reshape(1), input.shape[at])
        return primitives.index_select(input, at, place).squeeze(at)
    return take_region(input, at, _place("select", input, at, index), 1).squeeze(at)


@operation
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Replace one slice along an axis.

    >>> gt.select_scatter(gt.zeros(2, 2), gt.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]], dtype=float32)
    """
    need_axes("select_scatter", input, 1)
    at = axis_of("select_scatter", dim, input.ndim)
    place = _place("select_scatter", input, at, index)
    _need_shape("select_scatter", src, (*input.shape[:at], *input.shape[at + 1 :]))
    return fill_region(input, src.unsqueeze(at), at, place, 1)


def _place(name: str, input: Tensor, axis: int, index: int) -> int:
    """Return an index counted from the front."""
    length = input.shape[axis]
    if not -length <= index < length:
        raise IndexError(
            f"{name}: index {index} is out of range for axis {axis} of shape {input.shape}"
        )
    return index % length


def _need_shape(name: str, src: Tensor, shape: tuple[int, ...]) -> None:
    """Raise unless the replacement of a slice has the slice's shape."""
    if src.shape != shape:
        raise ValueError(f"{name}: src has shape {src.shape}, expected the slice's, {shape}")


@function
def slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a view of the slices from `start` to `end` along an axis, like a slice of a list.

    Args:
        input: the tensor.
        dim: the axis.
        start: the first position; from the back if below 0.
        end: the position after the last.
        step: the distance from one position to the next, 1 or more.

    >>> gt.slice(gt.arange(5), 0, 1, -1)
    tensor([1, 2, 3], dtype=int64)
    """
    return primitives.slice(input, *_sliced("slice", input, dim, start, end, step))


@operation
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Replace the slices from `start` to `end` along an axis.

    >>> gt.slice_scatter(gt.zeros(4), gt.ones(2), step=2)
    tensor([1., 0., 1., 0.], dtype=float32)
    """
    starts, sizes, steps = _sliced("slice_scatter", input, dim, start, end, step)
    _need_shape("slice_scatter", src, tuple(sizes))
    return primitives.slice_assign(input, src, starts, sizes, steps)


def _sliced(
    name: str, input: Tensor, dim: int, start: int | None, end: int | None, step: int
) -> tuple[Any, Any, Any]:
    """Return the region of a Python slice: negative ends count from the back."""
    need_axes(name, input, 1)
    if step < 1:
        raise ValueError(f"{name}: step is {step}, expected 1 or more")
    at = axis_of(name, dim, input.ndim)
    places = range(input.shape[at])[builtins.slice(start, end, step)]
    return region(input, at, places.start, len(places), step)


@operation(method=False, in_place=True)
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """Return a tensor of the same shape and dtype with one value everywhere.

    >>> gt.fill(gt.zeros(2), 3)
    tensor([3., 3.], dtype=float32)
    """
    if not isinstance(value, Tensor) and not input.requires_grad:
        return _gt.full_like(input, value)
    if not isinstance(value, Tensor):
        value = _gt.tensor_beside(input, value, dtype=input.dtype)
    need_axes("fill", value, 0, 0)
    return primitives.slice_assign(input, value, *whole_region(input))


@method
def resize_(input: Tensor, *size: Size, memory_format: Any = None) -> Tensor:
    """Change a tensor's shape in place: the first values stay, and new values are zero.

    >>> gt.ones(3).resize_(1, 3)
    tensor([[1., 1., 1.]], dtype=float32)
    """
    if input.requires_grad:
        raise RuntimeError("resize_: the tensor requires gradients, which need its old shape")
    lengths: tuple[Any, ...] = ints(size[0]) if len(size) == 1 else size
    missing = math.prod(lengths) - input.numel()
    flat = constant_pad_nd(input.ravel(), (0, missing)) if missing else input
    return input._become(flat.reshape(lengths))


@operation
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Change a tensor's shape in place to that of another tensor; see `resize_`.

    >>> gt.ones(3).resize_as_(gt.ones(1, 3))
    tensor([[1., 1., 1.]], dtype=float32)
    """
    return resize_(input, the_template.shape)


@operation
def zero_(input: Tensor) -> Tensor:
    """Set all values to zero, in place.

    >>> gt.ones(2).zero_()
    tensor([0., 0.], dtype=float32)
    """
    return input.fill_(0)
