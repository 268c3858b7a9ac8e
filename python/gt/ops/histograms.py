"""Histograms: counts of values by number or by interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt._results import Histogram
from gt.ops.create import beside
from gt.ops.registry import function, operation
from gt.ops.searching import places
from gt.ops.sizes import filled, need_axes


@operation
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count how many times each of 0, 1, 2, ... occurs; waits for the largest value.

    Args:
        input: integers of 0 or more, one axis.
        weights: the weight of each value; 1 by default.
        minlength: the least length of the result.

    >>> gt.bincount(gt.tensor([1, 1, 3], dtype=gt.int64))
    tensor([0, 2, 0, 1], dtype=int64)
    """
    if input.dtype.is_floating_point or input.dtype == gt.bool:
        raise TypeError(f"bincount: expected integers, not {input.dtype.name}")
    need_axes("bincount", input, 1, 1)
    if minlength < 0:
        raise ValueError(f"bincount: minlength is {minlength}, expected 0 or more")
    if weights is not None and weights.shape != input.shape:
        raise ValueError(
            f"bincount: weights of shape {weights.shape} do not fit input of shape {input.shape}"
        )
    if input.numel() == 0:
        return filled(input, (minlength,), 0, gt.int64)
    least, most = gt.stack([*gt.aminmax(input.long())]).tolist()
    if least < 0:
        raise ValueError(f"bincount: input contains {int(least)}, expected numbers of 0 or more")
    shares = gt.ones_like(input, dtype=gt.int64) if weights is None else weights.detach()
    if weights is not None and weights.dtype != gt.float32:
        shares = shares.double()
    return _counts(input.long(), shares, max(int(most) + 1, minlength))


def _counts(index: Tensor, shares: Tensor, bins: int) -> Tensor:
    """Add the weight of each index to its bin."""
    return primitives.index_add(filled(shares, (bins,), 0), 0, index, shares)


@operation
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Count the values in `bins` intervals of equal length from `min` to `max`.

    Values outside are not counted. Where min equals max, the intervals reach from the smallest to
    the largest value, or from 1 below to 1 above if these are equal.

    >>> gt.histc(gt.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.], dtype=float32)
    """
    _check_bins("histc", input, bins)
    if max < min:
        raise ValueError(f"histc: min is {min} and max is {max}, expected min below max")
    x = input.detach().reshape(-1)
    x = x.float() if x.dtype.itemsize == 2 else x
    low, high = (min, max) if min != max else _limits(x, 1.0)
    inside = primitives.logical_and(x >= low, x <= high)
    place = primitives.where(inside, (x - low) * bins / (high - low), 0)._cast(gt.int64)
    counts = _counts(place.clamp(0, bins - 1), inside.long(), bins)
    return counts._cast(input.dtype)


def _check_bins(name: str, input: Tensor, bins: int) -> None:
    if not input.dtype.is_floating_point:
        raise TypeError(f"{name}: expected floats, not {input.dtype.name}")
    if bins < 1:
        raise ValueError(f"{name}: bins is {bins}, expected 1 or more")


def _limits(x: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """Return the smallest and largest value, with a margin if equal; 0 and 1 without values."""
    if x.numel() == 0:
        return filled(x, (), 0), filled(x, (), 1)
    low, high = primitives.amin(x), primitives.amax(x)
    apart = primitives.where(low == high, margin, 0.0)
    return low - apart, high + apart


@operation
def histogram(
    input: Tensor,
    bins: Tensor | int,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Count the values in intervals; the last interval includes its upper end.

    Args:
        input: a tensor of floats.
        bins: the number of intervals of equal length, or a sorted tensor of their edges.
        range: the lower and upper end of all intervals; by default the smallest and largest value.
        weight: the weight of each value; 1 by default.
        density: whether counts are divided by their sum and the lengths of the intervals.

    >>> gt.histogram(gt.tensor([1.0, 2.0, 1.0]), 3, range=(0.0, 3.0)).hist
    tensor([0., 2., 1.], dtype=float32)
    """
    shares = None if weight is None else weight.reshape(-1)
    if weight is not None and weight.shape != input.shape:
        raise ValueError(
            f"histogram: weight of shape {weight.shape} does not fit input of shape {input.shape}"
        )
    hist, edges = _binned("histogram", input.reshape(-1, 1), [bins], range, shares, density)
    return Histogram(hist, edges[0])


@function
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Count points in the boxes of a grid; parameters as for `histogram`.

    Args:
        input: a tensor of floats, whose last axis is a point.
        bins: the number of intervals along each axis of the space (one int for all), or a sorted
            tensor of edges for each axis.
        range: the lower and the upper end along each axis, one after another.
        weight: the weight of each point.
        density: whether counts are divided by their sum and the volumes of the boxes.

    >>> gt.histogramdd(gt.tensor([[0.0, 1.0], [1.0, 0.0]]), 2).hist
    tensor([[0., 1.],
            [1., 0.]], dtype=float32)
    """
    need_axes("histogramdd", input, 2)
    count = input.shape[-1]
    bins = [bins] * count if isinstance(bins, int) else [*bins]
    if len(bins) != count:
        raise ValueError(f"histogramdd: bins for {len(bins)} axes do not fit points of {count}")
    if weight is not None and weight.shape != input.shape[:-1]:
        raise ValueError(
            f"histogramdd: weight of shape {weight.shape} does not fit points of shape "
            f"{input.shape[:-1]}"
        )
    shares = None if weight is None else weight.reshape(-1)
    points = input.reshape(math.prod(input.shape[:-1]), count)
    return Histogram(*_binned("histogramdd", points, bins, range, shares, density))


def _binned(
    name: str, points: Tensor, bins: list[Any], range: Any, shares: Tensor | None, density: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the counts of points in the boxes of a grid, and the edges of the intervals."""
    points = points.detach()
    ends = [None] * len(bins) if range is None else [*zip(range[::2], range[1::2], strict=True)]
    if len(ends) != len(bins):
        raise ValueError(f"{name}: range has {2 * len(ends)} ends, expected {2 * len(bins)}")
    columns = [points[:, axis] for axis, _ in enumerate(bins)]
    edges = tuple(_edges(name, *of) for of in zip(columns, bins, ends, strict=True))
    sizes = [of.shape[0] - 1 for of in edges]
    inside, place = _places(columns[0], edges[0])
    for x, limits, size in zip(columns[1:], edges[1:], sizes[1:], strict=True):
        within, at = _places(x, limits)
        inside = primitives.logical_and(inside, within)
        place = place * size + at
    counted = inside.long() if shares is None else primitives.where(inside, shares.detach(), 0)
    hist = _counts(place, counted, math.prod(sizes)).reshape(sizes)._cast(points.dtype)
    return (_per_volume(hist, edges) if density else hist), edges


def _places(x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether values are between the first and the last edge, and their intervals."""
    within = primitives.logical_and(x >= edges[0], x <= edges[-1])
    return within, (places(edges, x, right=True) - 1).clamp(0, edges.shape[0] - 2)


def _edges(name: str, x: Tensor, bins: Any, ends: Any) -> Tensor:
    """Return the edges of the intervals along one axis."""
    if isinstance(bins, Tensor):
        need_axes(name, bins, 1, 1)
        _check_bins(name, x, bins.shape[0] - 1)
        return bins.detach()._cast(x.dtype)
    _check_bins(name, x, bins)
    if ends is None:
        low, high = _limits(x, 0.5)
    elif ends[0] > ends[1]:
        raise ValueError(f"{name}: range starts at {ends[0]} and ends at {ends[1]}")
    else:
        margin = 0.5 if ends[0] == ends[1] else 0.0
        low, high = (filled(x, (), end) for end in (ends[0] - margin, ends[1] + margin))
    with beside(x):
        at = gt.arange(bins + 1)
    step = ((high - low) / bins).double()
    # Count from the nearer end, so that both are exact, and round once, as PyTorch's linspace.
    up, down = low.double() + at * step, high.double() - (bins - at) * step
    return primitives.where(at < (bins + 1) // 2, up, down)._cast(x.dtype)


def _per_volume(hist: Tensor, edges: tuple[Tensor, ...]) -> Tensor:
    share = hist / hist.sum()
    for axis, limits in enumerate(edges):
        lengths = gt.diff(limits)
        share = share / lengths.reshape([-1 if at == axis else 1 for at, _ in enumerate(edges)])
    return share
