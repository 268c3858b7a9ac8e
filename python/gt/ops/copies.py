"""Copies of what views show: `t_copy` for `t`, and so on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gt._gt import Tensor, primitives
from gt.ops import axes, diagonal, regions, shape, split, strided
from gt.ops.annotations import Size
from gt.ops.registry import function, operation


@function
def alias_copy(input: Tensor) -> Tensor:
    """Give a copy of a tensor.

    >>> gt.alias_copy(gt.ones(2))
    tensor([1., 1.], dtype=float32)
    """
    return input.clone()


@function
def detach_copy(input: Tensor) -> Tensor:
    """Give a copy of a tensor without its history.

    >>> gt.detach_copy(gt.ones(1, requires_grad=True)).requires_grad
    False
    """
    return input.detach().clone()


@function
def permute_copy(input: Tensor, dims: Size) -> Tensor:
    """Give a copy with the axes in another order.

    >>> gt.permute_copy(gt.ones(2, 3), (1, 0)).shape
    (3, 2)
    """
    return primitives.permute(input, dims).clone()


@operation
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Give a copy of `length` slices along an axis from `start` on.

    >>> gt.narrow_copy(gt.arange(3), 0, 1, 2)
    tensor([1, 2], dtype=int64)
    """
    return input.narrow(dim, start, length).clone()


def _copy_of(view: Callable[..., Any]) -> None:
    """Make the function that gives copies of what another one views."""

    @functools.wraps(view)
    def copy(*args: Any, **kwargs: Any) -> Any:
        seen = view(*args, **kwargs)
        return seen.clone() if isinstance(seen, Tensor) else tuple(one.clone() for one in seen)

    copy.__name__ = copy.__qualname__ = f"{view.__name__}_copy"
    copy.__doc__ = f"Give a copy of what `{view.__name__}` views; parameters as for it."
    function(copy)


for _view in (
    strided.as_strided,
    strided.unfold,
    diagonal.diagonal,
    shape.expand,
    shape.squeeze,
    shape.unsqueeze,
    shape.view,
    axes.t,
    axes.transpose,
    regions.select,
    regions.slice,
    split.split,
    split.split_with_sizes,
    split.unbind,
):
    _copy_of(_view)
