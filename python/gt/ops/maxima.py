"""The largest values of windows, and their indices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import gt
from gt._gt import Tensor, arange_beside
from gt.ops.registry import function
from gt.ops.sliding import over, places, taken


def largest(input: Tensor, along: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the largest value of each window, and its index in the last axes, flattened.

    Args:
        input: the tensor.
        along: for each of the last axes, the indices of the values in windows: [kernel, number],
            or [..., kernel, number] if the axes before have different windows.
    """
    axes = len(along)
    at = places(along, input.shape[-axes:]).flatten(-2 * axes, -axes - 1)
    flat = input.flatten(-axes)
    if at.ndim == axes + 1:
        values = taken(input.detach(), at, axes)
    else:
        values = flat.detach().gather(-1, at.flatten(-axes - 1)).reshape(at.shape)
    best = _place(values, -axes - 1)
    index = at.expand(values.shape).gather(-axes - 1, best).squeeze(-axes - 1)
    return flat.gather(-1, index.flatten(-axes)).reshape(index.shape), index


def _place(values: Tensor, axis: int) -> Tensor:
    """Return the index of the first largest value; of NaNs, that of the last."""
    best = values.argmax(axis, True)
    if not values.dtype.is_floating_point:
        return best
    order = over(arange_beside(values, values.shape[axis]), axis) + 1
    last = gt.where(values.isnan(), order, 0).amax(axis, True)
    return gt.where(last > 0, last - 1, best)


def with_indices(of: Callable[..., Any]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Register the variant of a pooling that always returns `(values, indices)`."""
    signature = inspect.signature(of)

    @functools.wraps(of)
    def pooling(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        given = signature.bind(*args, **kwargs)
        given.arguments["return_indices"] = True
        return of(*given.args, **given.kwargs)

    pooling.__name__ = pooling.__qualname__ = f"{of.__name__}_with_indices"
    pooling.__doc__ = f"With `return_indices=True`: {of.__doc__}"
    return function(namespace="gt.nn.functional")(pooling)
