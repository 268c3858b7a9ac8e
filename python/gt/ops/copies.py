"""Variants of views that return copies: `t_copy` for `t` and the others that PyTorch has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gt._gt import Tensor, primitives
from gt.ops import axes, regions, shape, strided
from gt.ops.annotations import Size
from gt.ops.diagonal import diagonal
from gt.ops.registry import function, operation
from gt.ops.split import split, split_with_sizes, unbind


@function
def alias_copy(input: Tensor) -> Tensor:
    """Return a copy of a tensor.

    >>> gt.alias_copy(gt.ones(2))
    tensor([1., 1.], dtype=float32)
    """
    return input.clone()


@function
def detach_copy(input: Tensor) -> Tensor:
    """Return a copy of a tensor without its history.

    >>> gt.detach_copy(gt.ones(1, requires_grad=True)).requires_grad
    False
    """
    return input.detach().clone()


@function
def permute_copy(input: Tensor, dims: Size) -> Tensor:
    """Return a copy with the axes in another order.

    >>> gt.permute_copy(gt.ones(2, 3), (1, 0)).shape
    (3, 2)
    """
    return primitives.permute(input, dims).clone()


@operation
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a copy of `length` slices along an axis, beginning at `start`.

    >>> gt.narrow_copy(gt.arange(3), 0, 1, 2)
    tensor([1, 2], dtype=int64)
    """
    return input.narrow(dim, start, length).clone()


def _copy_of(view: Callable[..., Any]) -> None:
    """Register the function that returns a copy of what a viewing function returns."""

    @functools.wraps(view)
    def copy(*args: Any, **kwargs: Any) -> Any:
        seen = view(*args, **kwargs)
        return seen.clone() if isinstance(seen, Tensor) else tuple(one.clone() for one in seen)

    copy.__name__ = copy.__qualname__ = f"{view.__name__}_copy"
    copy.__doc__ = f"Return a copy of the view that `{view.__name__}` returns; same parameters."
    function(copy)


for _view in (
    strided.as_strided,
    strided.unfold,
    diagonal,
    shape.expand,
    shape.squeeze,
    shape.unsqueeze,
    shape.view,
    axes.t,
    axes.transpose,
    regions.select,
    regions.slice,
    split,
    split_with_sizes,
    unbind,
):
    _copy_of(_view)
