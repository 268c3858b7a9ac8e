"""Axes, lengths and regions as parameters of operations."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

from gt._gt import Tensor, primitives, tensor_beside
from gt.ops.annotations import DType, F, Number, Size, T
from gt.ops.registry import operation


@overload
def method(function: F) -> F: ...
@overload
def method(**options: Any) -> Callable[[F], F]: ...
def method(function: F | None = None, **options: Any) -> Any:
    """Register a function only as a method, where PyTorch has no function of that name."""
    register = operation(namespace="gt.Tensor", **options)
    return register if function is None else register(function)


def one_by_one(function: Callable[..., T]) -> Callable[..., T]:
    """Accept the ints of the last parameter as a tuple or one by one: f(x, (2, 3)), f(x, 2, 3)."""
    signature = inspect.signature(function)
    *others, last = signature.parameters.values()

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> T:
        few = len(others)
        if len(given) > few + 1:
            given = (*given[:few], given[few:])
        return function(*given, **named)

    spread = signature.replace(parameters=[*others, last.replace(kind=last.VAR_POSITIONAL)])
    setattr(call, "__signature__", spread)  # noqa: B010
    return call


def changing_shape(function: F) -> F:
    """Add the method that changes the shape of the tensor itself: `t_` for `t`."""
    name = f"{function.__name__}_"

    @functools.wraps(function)
    def in_place(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self._become(function(self, *args, **kwargs))

    in_place.__name__ = name
    in_place.__doc__ = f"In place: {function.__doc__}"
    method(in_place)
    return function


def ints(given: Size) -> tuple[int, ...]:
    """Return one int or several as a tuple."""
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def axis_of(operation: str, dim: int, ndim: int) -> int:
    """Return an axis counted from the front; a tensor without axes has axis 0."""
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(
            f"{operation}: axis {dim} is out of range for a tensor of {ndim} axes\n"
            f"  hint: use {-count} to {count - 1}"
        )
    return dim % count


def two_axes(operation: str, dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Return two different axes counted from the front."""
    first, second = axis_of(operation, dim1, ndim), axis_of(operation, dim2, ndim)
    if first == second:
        raise ValueError(f"{operation}: axes {dim1} and {dim2} are the same, expected two")
    return first, second


def need_axes(operation: str, input: Tensor, least: int, most: int | None = None) -> None:
    """Raise unless the number of axes is from `least` to `most`, without limit if None."""
    if input.ndim < least or (most is not None and input.ndim > most):
        count = {None: f"{least} or more", least: f"{least}"}.get(most, f"{least} to {most}")
        raise ValueError(
            f"{operation}: shape {input.shape} has {input.ndim} axes, expected {count}"
        )


def need_index(operation: str, index: Tensor, parameter: str = "index") -> None:
    """Raise unless a tensor has a dtype of indices: int64 or int32."""
    if str(index.dtype) not in ("gt.int64", "gt.int32"):
        raise TypeError(
            f"{operation}: {parameter} is of dtype {index.dtype}, expected int64 or int32"
        )


def whole_region(input: Tensor) -> tuple[list[int], list[int], list[int]]:
    """Return the starts, lengths and steps of the region of all elements."""
    return [0] * input.ndim, list(input.shape), [1] * input.ndim


def region(input: Tensor, dim: int, start: int, size: int, step: int = 1) -> tuple[Any, Any, Any]:
    """Return the starts, lengths and steps of `size` elements from `start` along one axis."""
    starts, sizes, steps = whole_region(input)
    starts[dim], sizes[dim], steps[dim] = (start, size, step) if size else (0, 0, 1)
    return starts, sizes, steps


def take_region(input: Tensor, dim: int, start: int, size: int, step: int = 1) -> Tensor:
    """View `size` elements from `start` along one axis, `step` apart."""
    return primitives.slice(input, *region(input, dim, start, size, step))


def fill_region(
    input: Tensor, src: Tensor, dim: int, start: int, size: int, step: int = 1
) -> Tensor:
    """Replace `size` elements from `start` along one axis, `step` apart."""
    return primitives.slice_assign(input, src, *region(input, dim, start, size, step))


def filled(
    beside: Tensor, size: Sequence[int], value: Number, dtype: DType | None = None
) -> Tensor:
    """Make a tensor of one number in the session, and by default the dtype, of another tensor."""
    dtype = beside.dtype if dtype is None else dtype
    return tensor_beside(beside, value, dtype=dtype).expand(tuple(size))
