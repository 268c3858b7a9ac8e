"""Differences, derivatives and integrals of sampled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Dims, Number
from gt.ops.registry import function, operation
from gt.ops.sizes import axis_of, ints, need_axes


@operation
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the n-th differences of neighbours along an axis: `x[i + 1] - x[i]`; for bool, xor.

    Args:
        input: a tensor.
        n: how many times differences are taken.
        dim: the axis.
        prepend: values put before the tensor's.
        append: values put after the tensor's.

    >>> gt.diff(gt.tensor([1.0, 3.0, 6.0]))
    tensor([2., 3.], dtype=float32)
    """
    need_axes("diff", input, 1)
    if n < 0:
        raise ValueError(f"diff: n is {n}, expected 0 or more")
    at = axis_of("diff", dim, input.ndim)
    if n == 0:
        return input.clone()
    parts = [x for x in (prepend, input, append) if x is not None]
    x = primitives.cat(parts, at) if len(parts) > 1 else input
    for _ in range(min(n, x.shape[at])):
        before, after = _neighbours(x, at)
        x = primitives.logical_xor(after, before) if x.dtype == gt.bool else after - before
    return x


def _neighbours(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return all values along an axis but the last, and all but the first."""
    length = max(x.shape[dim] - 1, 0)
    return x.narrow(dim, 0, length), x.narrow(dim, x.shape[dim] - length, length)


@function(aliases=("trapz",))
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Integrate along an axis by trapezoids: the sum of `(y[i] + y[i + 1]) / 2` times the steps.

    Args:
        y: the values of a function.
        x: their coordinates, of the shape of `y` or one per value along `dim`; without it, steps
            of `dx`.
        dx: the step, 1 by default.
        dim: the axis.

    >>> gt.trapezoid(gt.tensor([1.0, 2.0, 3.0]))
    tensor(4., dtype=float32)
    """
    steps, at = _steps("trapezoid", y, x, dx, dim)
    if y.shape[at] == 0:
        return y.sum(at)._cast(y.dtype)
    if isinstance(steps, Tensor):
        before, after = _neighbours(y, at)
        return (steps * (before + after)).sum(at) / 2
    ends = y.select(at, 0) * 0.5 + y.select(at, -1) * 0.5
    return (y.sum(at) - ends) * steps


@function
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Integrate by trapezoids up to each value but the first; parameters as for `trapezoid`.

    >>> gt.cumulative_trapezoid(gt.tensor([1.0, 2.0, 3.0]))
    tensor([1.5, 4. ], dtype=float32)
    """
    steps, at = _steps("cumulative_trapezoid", y, x, dx, dim)
    before, after = _neighbours(y, at)
    if isinstance(steps, Tensor):
        return primitives.cumsum(steps * (before + after), at) / 2
    return primitives.cumsum(before + after, at) * (steps / 2)


def _steps(
    name: str, y: Tensor, x: Tensor | None, dx: Number | None, dim: int
) -> tuple[Tensor | Number, int]:
    """Return the steps between values, and the axis counted from the front."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}: give x or dx, not both")
    if gt.bool in (y.dtype, None if x is None else x.dtype):
        raise TypeError(f"{name}: expected numbers, not bool")
    need_axes(name, y, 1)
    at = axis_of(name, dim, y.ndim)
    if x is None:
        return 1 if dx is None else dx, at
    if x.ndim == 1:
        if x.shape[0] != y.shape[at]:
            raise ValueError(
                f"{name}: {x.shape[0]} values of x do not fit {y.shape[at]} values along axis {dim}"
            )
        x = x.reshape([-1 if axis == at else 1 for axis in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape([1] * (y.ndim - x.ndim) + [*x.shape])
    before, after = _neighbours(x, at)
    return after - before, at


@function
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Dims = None, edge_order: int = 1
) -> list[Tensor]:
    """Estimate the derivative of a sampled function along each axis by central differences.

    Args:
        input: the values of a function on a grid.
        spacing: the step between the values, one step for each axis, or a tensor of coordinates
            for each axis.
        dim: the axes; all by default.
        edge_order: at the ends, 1 for the difference of two values, 2 for three values.

    >>> gt.gradient(gt.tensor([1.0, 4.0, 9.0, 16.0]))
    [tensor([3., 4., 6., 7.], dtype=float32)]
    """
    dims = range(input.ndim) if dim is None else ints(dim)
    axes = [axis_of("gradient", axis, input.ndim) for axis in dims]
    if len(set(axes)) < len(axes):
        raise ValueError(f"gradient: dim {dim} names an axis twice")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is {edge_order}, expected 1 or 2")
    spacing = 1 if spacing is None else spacing
    given = [*spacing] if isinstance(spacing, Sequence) else [spacing] * len(axes)
    if len(given) != len(axes):
        raise ValueError(f"gradient: {len(given)} spacings for {len(axes)} axes")
    for axis in axes:
        if input.shape[axis] <= edge_order:
            raise ValueError(
                f"gradient: axis {axis} of shape {input.shape} is too short for edge_order "
                f"{edge_order}, expected {edge_order + 1} values or more"
            )
    wide = input.float() if input.dtype == gt.float16 or input.dtype == gt.bfloat16 else input
    found = [_derivative(wide, *pair, edge_order) for pair in zip(axes, given, strict=True)]
    return found if wide is input else [slope._cast(input.dtype) for slope in found]


def _derivative(x: Tensor, dim: int, spacing: Tensor | Number, edge_order: int) -> Tensor:
    """Return slopes between the neighbours of each value, and of edge_order + 1 values at ends."""
    length = x.shape[dim]
    ends = [_taken(x, dim, range(edge_order + 1)), _taken(x, dim, range(-1, -edge_order - 2, -1))]
    forth: list[Any]
    back: list[Any]
    if isinstance(spacing, Tensor):
        steps = diff(_along(spacing, x, dim), 1, dim)
        forth = _taken(steps, dim, range(edge_order))
        back = [-step for step in _taken(steps, dim, range(-1, -edge_order - 1, -1))]
    else:
        forth, back = [spacing] * edge_order, [-spacing] * edge_order
    parts = [_slope_at_end(ends[0], forth), _slope_at_end(ends[1], back)]
    if length > 2:
        before, here, after = (x.narrow(dim, start, length - 2) for start in range(3))
        if isinstance(spacing, Tensor):
            one, two = (steps.narrow(dim, start, length - 2) for start in range(2))
            middle = ((here - before) * (two / one) + (after - here) * (one / two)) / (one + two)
        else:
            middle = (after - before) / spacing / 2
        parts.insert(1, middle)
    return primitives.cat(parts, dim)


def _along(spacing: Tensor, x: Tensor, dim: int) -> Tensor:
    """Reshape the coordinates along an axis so that they broadcast to the tensor."""
    if spacing.ndim != 1 or spacing.shape[0] != x.shape[dim]:
        raise ValueError(
            f"gradient: coordinates of shape {spacing.shape} do not fit {x.shape[dim]} values"
        )
    return spacing.reshape([-1 if axis == dim else 1 for axis in range(x.ndim)])


def _taken(x: Tensor, dim: int, places: range) -> list[Tensor]:
    """Return slices of length 1 at the given positions along an axis."""
    return [x.narrow(dim, place % x.shape[dim], 1) for place in places]


def _slope_at_end(values: list[Tensor], steps: list[Any]) -> Tensor:
    """Return the slope of a line or parabola through two or three values, at the first one."""
    if len(steps) == 1:
        return (values[1] - values[0]) / steps[0]
    one, two = steps
    near = (values[1] - values[0]) * ((one + two) / (one * two))
    return near - (values[2] - values[0]) * (one / (two * (one + two)))
