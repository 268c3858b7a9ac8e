"""Changes of shape: axes split, merged, inserted, removed or repeated."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from gt import _gt
from gt._gt import Tensor, parse_dtype
from gt.ops.annotations import Dims, DType, Size
from gt.ops.registry import function, operation
from gt.ops.sizes import axis_of, changing_shape, ints, method, one_by_one

_reshape, _view, _expand, _squeeze, _unsqueeze = (
    getattr(Tensor, _name) for _name in ("reshape", "_view", "expand", "squeeze", "unsqueeze")
)


def _function_of(name: str) -> Callable[..., Any]:
    """Register a function that calls a method."""
    of = getattr(Tensor, name)

    @functools.wraps(of)
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return of(input, *args, **kwargs)

    return function(call)


for _name in "flatten narrow".split():
    _function_of(_name)


@operation
@one_by_one
def reshape(input: Tensor, shape: Size) -> Tensor:
    """Return the values, in row-major order, in another shape; one length may be -1.

    >>> gt.reshape(gt.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]], dtype=int64)
    """
    return _reshape(input, shape)


@method(autocast="inside")
@one_by_one
def view(input: Tensor, size: Size | DType) -> Tensor:
    """Return a view of the same memory in another shape; one length may be -1.

    Some tensors, such as transposed ones, have no such view, and only `reshape` works, by copying.
    A dtype, which in PyTorch reinterprets the bits, may only be the tensor's own.

    >>> gt.arange(4).view(2, -1)
    tensor([[0, 1],
            [2, 3]], dtype=int64)
    """
    one = size[0] if isinstance(size, tuple | list) and len(size) == 1 else size
    if not isinstance(one, str | _gt.dtype):
        return _view(input, size)
    if parse_dtype(one) != input.dtype:
        raise TypeError(
            f"view: the bits of {input.dtype} cannot be reinterpreted as {one}\n"
            "  hint: x.to(dtype) converts the numbers"
        )
    return _view(input, input.shape)


@method(autocast="inside")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the values, in row-major order, in the shape of another tensor.

    >>> gt.arange(4).reshape_as(gt.ones(2, 2))
    tensor([[0, 1],
            [2, 3]], dtype=int64)
    """
    return _reshape(input, other.shape)


@method(autocast="inside")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view of the same memory in the shape of another tensor.

    >>> gt.arange(4).view_as(gt.ones(2, 2)).shape
    (2, 2)
    """
    return _view(input, other.shape)


@operation
def ravel(input: Tensor) -> Tensor:
    """Return all values along one axis, in row-major order.

    >>> gt.ravel(gt.ones(2, 2)).shape
    (4,)
    """
    return _reshape(input, -1)


@operation
def unflatten(input: Tensor, dim: int, sizes: Size) -> Tensor:
    """Split an axis into several; one of their lengths may be -1.

    Args:
        input: the tensor.
        dim: the axis.
        sizes: the lengths of the new axes.

    >>> gt.unflatten(gt.ones(6, 2), 0, (2, -1)).shape
    (2, 3, 2)
    """
    at, sizes = axis_of("unflatten", dim, input.ndim), ints(sizes)
    known, length = math.prod(size for size in sizes if size != -1), input.size(dim)
    fits = known > 0 and length % known == 0 if -1 in sizes else known == length
    if not sizes or not fits or sizes.count(-1) > 1:
        raise ValueError(
            f"unflatten: the product of sizes {sizes} is not {length}, the length of axis {dim}"
        )
    sizes = tuple(length // known if size == -1 else size for size in sizes)
    return _reshape(input, (*input.shape[:at], *sizes, *input.shape[at + 1 :]))


@changing_shape
@operation
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of length 1 at a position.

    >>> gt.unsqueeze(gt.ones(2), 0).shape
    (1, 2)
    """
    return _unsqueeze(input, dim)


@changing_shape
@operation
def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """Remove axes of length 1: all of them, or the given ones.

    >>> gt.squeeze(gt.ones(1, 2, 1)).shape
    (2,)
    """
    if isinstance(dim, tuple | list) and not dim:
        return _reshape(input, input.shape)
    return _squeeze(input, dim)


@operation
@one_by_one
def expand(input: Tensor, size: Size) -> Tensor:
    """Repeat axes of length 1 and add axes in front; -1 keeps the length of an axis.

    >>> gt.expand(gt.ones(2, 1), (3, 2, -1)).shape
    (3, 2, 1)
    """
    return _expand(input, size)


@method
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Repeat axes of length 1 to the shape of another tensor.

    >>> gt.ones(1, 2).expand_as(gt.ones(3, 2)).shape
    (3, 2)
    """
    return _expand(input, other.shape)


@operation
@one_by_one
def broadcast_to(input: Tensor, size: Size) -> Tensor:
    """Repeat axes of length 1 and add axes in front: the same as `expand`.

    >>> gt.broadcast_to(gt.ones(2), (3, 2)).shape
    (3, 2)
    """
    return _expand(input, size)


@function
def broadcast_shapes(*shapes: Size) -> tuple[int, ...]:
    """Return the common shape that shapes broadcast to.

    >>> gt.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return _gt.broadcast_shapes(*shapes)


@function
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand tensors to their common broadcast shape.

    >>> gt.broadcast_tensors(gt.ones(3, 1), gt.ones(4))[0].shape
    (3, 4)
    """
    tensors = _listed(tensors)
    shape = _gt.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return tuple(_expand(tensor, shape) for tensor in tensors)


@method
@one_by_one
def sum_to_size(input: Tensor, size: Size) -> Tensor:
    """Sum over the axes that broadcasting repeats: the reverse of `expand`.

    >>> gt.ones(3, 2).sum_to_size(1, 2)
    tensor([[3., 3.]], dtype=float32)
    """
    size, new = ints(size), input.ndim - len(ints(size))
    if new < 0 or any(to not in (1, own) for to, own in zip(size, input.shape[new:], strict=True)):
        raise ValueError(f"sum_to_size: {size} does not expand to the tensor's shape {input.shape}")
    over = [at for at in range(input.ndim) if at < new or size[at - new] != input.shape[at]]
    return _reshape(input.sum(over or None), size) if over or not size else input


@function
def atleast_1d(*tensors: Tensor) -> Any:
    """Return a tensor with at least one axis; for several tensors a tuple of them.

    >>> gt.atleast_1d(gt.tensor(2.0)).shape
    (1,)
    """
    return _each(lambda x: _reshape(x, 1) if x.ndim == 0 else x, tensors)


@function
def atleast_2d(*tensors: Tensor) -> Any:
    """Add axes of length 1 in front until there are two; for several tensors return a tuple.

    >>> gt.atleast_2d(gt.ones(3)).shape
    (1, 3)
    """
    return _each(lambda x: _reshape(x, (1, -1)) if x.ndim < 2 else x, tensors)


@function
def atleast_3d(*tensors: Tensor) -> Any:
    """Add axes of length 1 until there are three: (n) becomes (1, n, 1), (n, m) (n, m, 1).

    >>> gt.atleast_3d(gt.ones(3)).shape
    (1, 3, 1)
    """
    return _each(lambda x: atleast_2d(x).unsqueeze(-1) if x.ndim < 3 else x, tensors)


def _listed(tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the tensors of f(x, y) or of f([x, y])."""
    one = len(tensors) == 1 and isinstance(tensors[0], tuple | list)
    return tuple(tensors[0]) if one else tensors


def _each(change: Callable[[Tensor], Tensor], tensors: tuple[Any, ...]) -> Any:
    """Change one tensor, or each of several."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return change(tensors[0])
    return tuple(change(tensor) for tensor in _listed(tensors))
