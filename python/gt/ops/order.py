"""Operations by order: sorting, top k, medians, quantiles and modes."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt._results import ValuesIndices
from gt.autograd.function import Function
from gt.ops.registry import operation


@operation
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> ValuesIndices:
    """Sort the values along an axis; NaN counts as the largest.

    Args:
        input: the tensor.
        dim: the axis.
        descending: whether the largest value comes first.
        stable: accepted; the order of equal values is always kept.

    Returns:
        The sorted values, and int64 indices of them in the input.

    >>> gt.sort(gt.tensor([3.0, 1.0, 2.0])).indices
    tensor([1, 2, 0], dtype=int64)
    """
    return ValuesIndices(*primitives.sort(input, dim, descending))


@operation
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the indices that sort the values along an axis.

    >>> gt.argsort(gt.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0], dtype=int64)
    """
    return primitives.sort(input, dim, descending)[1]


@operation
def msort(input: Tensor) -> Tensor:
    """Sort the values along the first axis.

    >>> gt.msort(gt.tensor([3.0, 1.0]))
    tensor([1., 3.], dtype=float32)
    """
    return primitives.sort(input, 0)[0]


@operation
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesIndices:
    """Return the k largest (or smallest) values along an axis and their indices, always sorted.

    Args:
        input: the tensor.
        k: the number of values.
        dim: the axis.
        largest: whether the largest values are returned.
        sorted: accepted; the values are always sorted.

    >>> gt.topk(gt.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.], dtype=float32)
    """
    return ValuesIndices(*primitives.topk(input, dim, int(k), largest))


@operation
def cummax(input: Tensor, dim: int) -> ValuesIndices:
    """Return the cumulative maximum along an axis, and its index, the last of equal values.

    >>> gt.cummax(gt.tensor([1.0, 3.0, 2.0]), 0).values
    tensor([1., 3., 3.], dtype=float32)
    """
    return ValuesIndices(*primitives.cummax(input, dim))


@operation
def cummin(input: Tensor, dim: int) -> ValuesIndices:
    """Return the cumulative minimum along an axis, and its index, the last of equal values.

    >>> gt.cummin(gt.tensor([3.0, 1.0, 2.0]), 0).values
    tensor([3., 1., 1.], dtype=float32)
    """
    return ValuesIndices(*primitives.cummin(input, dim))


@operation
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """Return the k-th smallest value along an axis, counted from 1, and its index.

    >>> gt.kthvalue(gt.tensor([3.0, 1.0, 2.0]), 2)[0]
    tensor(2., dtype=float32)
    """
    length = input.shape[dim] if input.ndim else 1
    if not 1 <= k <= length:
        raise RuntimeError(f"kthvalue: k is {k}, expected 1 to {length}, the length of axis {dim}")
    return _at(primitives.sort(input, dim), k - 1, dim, keepdim)


def _at(order: tuple[Tensor, Tensor], place: int, dim: int, keepdim: bool) -> ValuesIndices:
    """Return the sorted values and their original indices at one position along an axis."""
    if order[0].ndim == 0:
        return ValuesIndices(*order)
    parts = [of.narrow(dim, place, 1) for of in order]
    return ValuesIndices(*(parts if keepdim else [part.squeeze(dim) for part in parts]))


@operation
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of all values, or along an axis with its index; the lower of two.

    If any value is NaN, the median is NaN.

    >>> gt.median(gt.tensor([3.0, 1.0, 2.0]))
    tensor(2., dtype=float32)
    """
    if dim is None:
        if input.numel() == 0:
            return gt.full((), float("nan"), dtype=input.dtype)
        return _shared(input, median(input.detach().reshape(-1), 0).values)
    order = primitives.sort(input, dim)
    length = input.shape[dim] if input.ndim else 1
    middle = _at(order, (length - 1) // 2, dim, keepdim)
    if not input.dtype.is_floating_point or input.ndim == 0:
        return middle
    # NaN is sorted last; the index is that of the first NaN.
    last, first = _at(order, length - 1, dim, keepdim), input.isnan().int().argmax(dim, keepdim)
    missing = last.values.isnan()
    return ValuesIndices(
        gt.where(missing, last.values, middle.values), gt.where(missing, first, middle.indices)
    )


@operation
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the values that are not NaN, the lower of two middle ones.

    >>> gt.nanmedian(gt.tensor([3.0, float("nan"), 2.0]))
    tensor(2., dtype=float32)
    """
    if dim is None:
        if input.numel() == 0:
            return gt.full((), float("nan"), dtype=input.dtype)
        return _shared(input, nanmedian(input.detach().reshape(-1), 0).values)
    values, indices = primitives.sort(input, dim)
    if input.ndim == 0:
        return ValuesIndices(values, indices)
    count = (~input.isnan()).sum(dim, keepdim=True)
    place = ((count - 1).clamp(min=0)) // 2
    found = [primitives.gather(of, dim, place) for of in (values, indices)]
    return ValuesIndices(*(found if keepdim else [of.squeeze(dim) for of in found]))


class _SharedMedian(Function):
    """The median of all values; the gradient is divided among the values equal to it."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, found: Tensor) -> Tensor:
        ctx.save_for_backward(input, found)
        return found.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        input, found = ctx.saved_tensors
        chosen = (input == found) | (input.isnan() & found.isnan())
        return chosen * (grad / chosen.sum()), None


def _shared(input: Tensor, found: Tensor) -> Tensor:
    return _SharedMedian.apply(input, found) if input.requires_grad else found


@operation
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """Return the most frequent value along an axis, the smallest of several, and its index.

    >>> gt.mode(gt.tensor([2.0, 1.0, 2.0]))[0]
    tensor(2., dtype=float32)
    """
    values, indices = primitives.sort(input, dim)
    if input.ndim == 0:
        return ValuesIndices(values, indices)
    length = input.shape[dim]
    before = values.narrow(dim, 0, length - 1) == values.narrow(dim, 1, length - 1)
    same = gt.cat([gt.zeros_like(values.narrow(dim, 0, 1), dtype="bool"), before], dim)
    # The length of the run of equal values up to each: its position minus that of the run's start.
    shape = [-1 if axis == dim % input.ndim else 1 for axis in range(input.ndim)]
    places = gt.arange(length).reshape(shape).expand(input.shape)
    starts = primitives.cummax(gt.where(same, 0, places), dim)[0]
    found = primitives.max_along(places - starts, dim)[1]
    results = [primitives.gather(of, dim, found) for of in (values, indices)]
    return ValuesIndices(*(results if keepdim else [of.squeeze(dim) for of in results]))


@operation(autocast="float32")
def quantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the q-th quantile: the value below which a share q of the values lies.

    Args:
        input: floats.
        q: one share or a tensor of shares, from 0 to 1; shares become the first axis.
        dim: the axis; all values by default.
        keepdim: whether the axis is kept with length 1.
        interpolation: how to choose between two neighbours: linear, lower, higher, midpoint or
            nearest.

    >>> gt.quantile(gt.tensor([1.0, 2.0, 3.0]), 0.25)
    tensor(1.5, dtype=float32)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skips_nan=False)


@operation(autocast="float32")
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the quantile of the values that are not NaN; parameters as for `quantile`.

    >>> gt.nanquantile(gt.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2., dtype=float32)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skips_nan=True)


def _quantile(
    name: str,
    input: Tensor,
    q: Any,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    skips_nan: bool,
) -> Tensor:
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}: interpolation is '{interpolation}', expected linear, lower, higher, "
            "midpoint or nearest"
        )
    if isinstance(q, (int, float)) and not 0 <= q <= 1:
        raise RuntimeError(f"{name}: q is {q}, expected 0 to 1")
    q = q if isinstance(q, Tensor) else gt.tensor(q, dtype=input.dtype)
    if q.dtype != input.dtype:
        raise RuntimeError(f"{name}: q is {q.dtype}, expected the input's {input.dtype}")
    kept = [1] * input.ndim
    if dim is None:
        input, along = input.reshape(-1), 0
    else:
        along = dim % max(input.ndim, 1)
        kept = [1 if axis == along else length for axis, length in enumerate(input.shape)]
        input = input.movedim(along, -1) if input.ndim else input.reshape(1)
    values = primitives.sort(input, -1)[0]
    missing = input.isnan()
    count = (~missing).sum(-1, keepdim=True) if skips_nan else input.shape[-1]
    place = q.reshape(-1) * (count - 1)
    if skips_nan:
        place = place.clamp(min=0)
    below, above = place.floor(), place.ceil()
    if interpolation == "nearest":
        below = above = place.round()
    lower = _values_at(values, below)
    upper = _values_at(values, above)
    weight = {"linear": place - below, "midpoint": 0.5, "higher": 1.0}.get(interpolation, 0.0)
    result = (
        lower + (upper - lower) * weight
        if interpolation in ("linear", "midpoint")
        else (upper if interpolation == "higher" else lower)
    )
    if not skips_nan:
        result = gt.where(missing.any(-1, keepdim=True), float("nan"), result)
    result = result.movedim(-1, 0)
    result = result.reshape([result.shape[0], *kept]) if keepdim else result
    return result if q.ndim else result.squeeze(0)


def _values_at(values: Tensor, places: Tensor) -> Tensor:
    """Return values along the last axis, at one list of positions or at one for each row."""
    places = places.long().expand(*values.shape[:-1], places.shape[-1])
    return primitives.gather(values, -1, places)
