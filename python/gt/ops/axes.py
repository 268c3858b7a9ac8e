"""Operations that reorder axes, and values along axes."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Dims, Size
from gt.ops.registry import extend_tensor, operation
from gt.ops.sizes import axis_of, changing_shape, ints, need_axes, one_by_one, two_axes

_transpose = Tensor.transpose


@changing_shape
@operation
def transpose(input: Tensor, dim0: Dims = None, dim1: int | None = None) -> Tensor:
    """Exchange two axes; without arguments the last two, like `.mT`.

    Args:
        input: the tensor.
        dim0: one axis; or all axes in their new order, as in NumPy.
        dim1: the other axis.

    >>> gt.transpose(gt.ones(2, 3, 4), 0, 2).shape
    (4, 3, 2)
    >>> gt.transpose(gt.ones(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    if not isinstance(dim0, tuple | list):
        return _transpose(input, dim0, dim1)
    if dim1 is not None:
        kind = type(dim0).__name__
        raise TypeError(f"transpose: dim0 must be an int beside dim1, not {kind} {dim0}")
    return input.permute(tuple(dim0))


@changing_shape
@operation
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two axes: the same as `transpose`.

    >>> gt.swapaxes(gt.ones(2, 3), 0, 1).shape
    (3, 2)
    """
    return _transpose(input, axis0, axis1)


@changing_shape
@operation
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes: the same as `transpose`.

    >>> gt.swapdims(gt.ones(2, 3), 0, 1).shape
    (3, 2)
    """
    return _transpose(input, dim0, dim1)


@changing_shape
@operation
def t(input: Tensor) -> Tensor:
    """Exchange the rows and columns of a matrix; vectors and numbers are unchanged.

    >>> gt.t(gt.ones(2, 3)).shape
    (3, 2)
    """
    need_axes("t", input, 0, 2)
    return primitives.permute(input, tuple(reversed(range(input.ndim))))


@operation
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate with its last two axes exchanged; of real numbers only the exchange.

    >>> gt.adjoint(gt.ones(2, 3, 4)).shape
    (2, 4, 3)
    """
    return _matrices_turned(gt.conj(input), "adjoint")


def _matrices_turned(input: Tensor, name: str) -> Tensor:
    if input.ndim == 1:
        need_axes(name, input, 2)
    return _transpose(input, -2, -1) if input.ndim else input


def _mt(input: Tensor) -> Tensor:
    return _matrices_turned(input, "mT")


def _mh(input: Tensor) -> Tensor:
    return _matrices_turned(gt.conj(input), "mH")


def _h(input: Tensor) -> Tensor:
    if input.ndim != 0:
        need_axes("H", input, 2, 2)
    return adjoint(input)


extend_tensor(
    mT=property(_mt, doc="The tensor with its last two axes exchanged."),
    mH=property(_mh, doc="The conjugate with its last two axes exchanged."),
    H=property(_h, doc="The conjugate of a matrix with its axes exchanged."),
)


@operation(aliases=("moveaxis",))
def movedim(input: Tensor, source: Size, destination: Size) -> Tensor:
    """Move axes to other positions; the remaining axes keep their order.

    Args:
        input: the tensor.
        source: one axis or several.
        destination: the position of each in the result.

    >>> gt.movedim(gt.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    source, destination = ints(source), ints(destination)
    if len(source) != len(destination):
        raise ValueError(
            f"movedim: source {source} and destination {destination} must have the same length"
        )
    start, end = _places("source", source, input), _places("destination", destination, input)
    order = [axis for axis in range(input.ndim) if axis not in start]
    for to, axis in sorted(zip(end, start, strict=True)):
        order.insert(to, axis)
    return primitives.permute(input, order) if input.ndim else input


def _places(what: str, dims: tuple[int, ...], input: Tensor) -> list[int]:
    """Return axes counted from the front; raise where one is named twice."""
    places = [axis_of("movedim", dim, input.ndim) for dim in dims]
    if len(set(places)) < len(places):
        raise ValueError(f"movedim: {what} {dims} names an axis twice")
    return places


@operation
@one_by_one
def flip(input: Tensor, dims: Size) -> Tensor:
    """Reverse the values along axes.

    >>> gt.flip(gt.arange(3), (0,))
    tensor([2, 1, 0], dtype=int64)
    """
    return primitives.flip(input, ints(dims)) if ints(dims) else input.clone()


@operation
def fliplr(input: Tensor) -> Tensor:
    """Reverse the values along axis 1: exchange left and right of a matrix.

    >>> gt.fliplr(gt.tensor([[1.0, 2.0]]))
    tensor([[2., 1.]], dtype=float32)
    """
    need_axes("fliplr", input, 2)
    return primitives.flip(input, (1,))


@operation
def flipud(input: Tensor) -> Tensor:
    """Reverse the values along axis 0: exchange top and bottom of a matrix.

    >>> gt.flipud(gt.tensor([1.0, 2.0]))
    tensor([2., 1.], dtype=float32)
    """
    need_axes("flipud", input, 1)
    return primitives.flip(input, (0,))


@operation
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotate by k times 90 degrees in the plane of two axes, from the first to the second.

    >>> gt.rot90(gt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [1., 3.]], dtype=float32)
    """
    need_axes("rot90", input, 2)
    if len(dims) != 2:
        raise ValueError(f"rot90: dims must be two axes, not {dims}")
    first, second = two_axes("rot90", dims[0], dims[1], input.ndim)
    turned = _transpose(input, first, second) if k % 2 else input
    flipped = {0: (), 1: (first,), 2: (first, second), 3: (second,)}[k % 4]
    return flip(turned, flipped)


@operation
def roll(input: Tensor, shifts: Size, dims: Dims = None) -> Tensor:
    """Shift the values along axes; values that leave at the end come back at the start.

    Without axes, all values in row-major order are shifted.

    Args:
        input: the tensor.
        shifts: the number of positions, one for each axis.
        dims: the axis or axes.

    >>> gt.roll(gt.arange(4), 1)
    tensor([3, 0, 1, 2], dtype=int64)
    """
    shifts, dims = ints(shifts), () if dims is None else ints(dims)
    if not dims and len(shifts) == 1:
        return roll(input.ravel(), shifts, 0).reshape(input.shape)
    if len(shifts) != len(dims) or not shifts:
        raise ValueError(f"roll: one shift for each axis is needed, not {shifts} for {dims}")
    for shift, dim in zip(shifts, dims, strict=True):
        input = _rolled(input, shift, dim)
    return input


def _rolled(input: Tensor, shift: int, dim: int) -> Tensor:
    """Shift along one axis by cutting it in two and joining the pieces in reverse order."""
    need_axes("roll", input, 1)
    length = input.shape[axis_of("roll", dim, input.ndim)]
    cut = -shift % length if length else 0
    parts = input.narrow(dim, cut, length - cut), input.narrow(dim, 0, cut)
    return primitives.cat(parts, dim)
