"""Lookup of rows of a table by index."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, arange_beside
from gt.autograd import Function
from gt.ops.registry import function
from gt.ops.sizes import filled

from .common import NN, wide


class _ScaledGradient(Function):
    """The identity, with a gradient multiplied by factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factors: Tensor) -> Tensor:
        ctx.save_for_backward(factors)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.saved_tensors[0], None


@function(namespace=NN)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` at integer indices; the axes of the indices come first.

    Args:
        input: the indices.
        weight: the table.
        padding_idx: a row that receives no gradient.
        max_norm: used rows with a larger norm are rescaled to this norm, in the table itself.
        norm_type: the exponent of that norm.
        scale_grad_by_freq: whether a row's gradient is divided by the number of its uses.
        sparse: accepted as in PyTorch; the gradient is dense, with the same values.

    >>> table = gt.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.nn.functional.embedding(gt.tensor([1], dtype=gt.int64), table)
    tensor([[3., 4.]], dtype=float32)
    """
    index = _index("embedding", input, weight).reshape(-1)
    if max_norm is not None:
        _shorten(weight, index, max_norm, norm_type)
    rows = _rows(weight, index, _row("embedding", padding_idx, weight), scale_grad_by_freq)
    return rows.reshape(*input.shape, weight.shape[1])


def _index(name: str, input: Tensor, weight: Tensor) -> Tensor:
    if input.dtype.is_floating_point or input.dtype == gt.bool:
        raise TypeError(
            f"{name}: indices must be integers, these are {input.dtype.name}\n"
            "  hint: gt.tensor([...], dtype=gt.int64)"
        )
    if weight.ndim != 2:
        raise ValueError(f"{name}: weight has shape {weight.shape}, expected 2 axes")
    return input.long()


def _row(name: str, padding_idx: int | None, weight: Tensor) -> int | None:
    """Return the index of the row without a gradient, counted from the front."""
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ValueError(f"{name}: padding_idx is {padding_idx}, but there are {rows} rows")
    return None if padding_idx is None else padding_idx % rows


def _shorten(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Rescale the rows at an index whose norm is above `max_norm`, in place."""
    # As one step: an index that is rejected changes no row.
    with gt.no_grad(), gt.step(weight):
        used = _counts(weight, index) > 0
        norms = gt.linalg.vector_norm(weight, norm_type, 1)
        factors = gt.where(used & (norms > max_norm), max_norm / (norms + 1e-7), 1)
        weight._assign((weight * factors.unsqueeze(1))._cast(weight.dtype), "embedding")


def _counts(weight: Tensor, index: Tensor) -> Tensor:
    """Return the number of uses of each row."""
    zeros = filled(weight, weight.shape[:1], 0, gt.float32)
    return zeros.index_add(0, index, gt.ones_like(index, dtype=gt.float32))


def _rows(weight: Tensor, index: Tensor, padding: int | None, scaled: bool) -> Tensor:
    """Return the rows at an index; no gradient flows to the padding row."""
    rows = weight.index_select(0, index)
    if not rows.requires_grad or (padding is None and not scaled):
        return rows
    factors = gt.ones_like(index, dtype=weight.dtype) if padding is None else index != padding
    if scaled:
        factors = factors / _counts(weight, index).index_select(0, index)
    return _ScaledGradient.apply(rows, factors._cast(weight.dtype).unsqueeze(1))


@function(namespace=NN)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the mean, sum or maximum of rows of `weight` over bags of indices.

    Args:
        input: the indices: a bag in each row, or all bags concatenated.
        weight: the table.
        offsets: the start of each bag, if bags are concatenated.
        max_norm: used rows with a larger norm are rescaled to this norm, in the table itself.
        norm_type: the exponent of that norm.
        scale_grad_by_freq: whether a row's gradient is divided by the number of its uses.
        mode: "mean", "sum" or "max".
        sparse: accepted as in PyTorch; the gradient is dense, with the same values.
        per_sample_weights: a factor for each index, only with mode "sum".
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: a row that is excluded from bags.

    >>> table, bags = gt.tensor([[1.0, 2.0], [3.0, 4.0]]), gt.tensor([[0, 1]], dtype=gt.int64)
    >>> gt.nn.functional.embedding_bag(bags, table)
    tensor([[2., 3.]], dtype=float32)
    """
    _check_bags(input, offsets, mode, per_sample_weights, scale_grad_by_freq)
    index = _index("embedding_bag", input, weight)
    if max_norm is not None:
        _shorten(weight, index.reshape(-1), max_norm, norm_type)
    padding = _row("embedding_bag", padding_idx, weight)
    rows = _rows(weight, index.reshape(-1), padding, scale_grad_by_freq)
    if offsets is None:
        count = input.shape[0]
        bag = arange_beside(input, count).unsqueeze(1).expand(input.shape).reshape(-1)
    else:
        count = offsets.shape[0] - include_last_offset
        bag = _bag_of_each(offsets, index, count)
    counted = gt.ones_like(bag, dtype=gt.bool) if padding is None else index.reshape(-1) != padding
    if mode == "max":
        zeros = filled(rows, (count + 1, rows.shape[1]), 0)
        bag = gt.where(counted, bag, count).unsqueeze(1).expand(rows.shape)
        return zeros.scatter_reduce(0, bag, rows, "amax", include_self=False)[:count]
    rows = wide("embedding_bag", rows)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    rows = gt.where(counted.unsqueeze(1), rows, 0)
    return _summed(rows, bag, counted, count, mode == "mean")._cast(weight.dtype)


def _check_bags(
    input: Tensor, offsets: Tensor | None, mode: str, factors: Tensor | None, scaled: bool
) -> None:
    name = "embedding_bag"
    if mode not in ("mean", "sum", "max"):
        raise ValueError(f"{name}: mode is '{mode}', expected 'mean', 'sum' or 'max'")
    if mode == "max" and scaled:
        raise ValueError(f"{name}: scale_grad_by_freq is not possible with mode 'max'")
    if input.ndim not in (1, 2):
        raise ValueError(f"{name}: input has shape {input.shape}, expected 1 or 2 axes")
    if (offsets is None) != (input.ndim == 2) or (offsets is not None and offsets.ndim != 1):
        raise ValueError(
            f"{name}: offsets, with one axis, are required with an input of one axis, and not "
            "allowed with two"
        )
    if factors is not None and mode != "sum":
        raise ValueError(f"{name}: per_sample_weights require mode 'sum', not '{mode}'")
    if factors is not None and factors.shape != input.shape:
        raise ValueError(
            f"{name}: per_sample_weights have shape {factors.shape}, expected {input.shape}"
        )


def _bag_of_each(offsets: Tensor, index: Tensor, count: int) -> Tensor:
    """Return the bag number of each index: the number of offsets up to it, minus 1."""
    starts = filled(index, (index.shape[0] + 1,), 0)
    starts = starts.index_add(0, offsets.long(), gt.ones_like(offsets, dtype=gt.int64))
    return starts.cumsum(0)[:-1] - 1


def _summed(rows: Tensor, bag: Tensor, counted: Tensor, count: int, mean: bool) -> Tensor:
    """Return the sum or the mean of the rows of each bag; zeros for an empty bag."""
    # Rows after the last bag are added to an extra bag, which is dropped.
    total = filled(rows, (count + 1, rows.shape[1]), 0).index_add(0, bag, rows)[:count]
    if not mean:
        return total
    sizes = filled(rows, (count + 1,), 0).index_add(0, bag, counted._cast(rows.dtype))[:count]
    return total / sizes.clamp(min=1).unsqueeze(1)


@function(namespace=NN)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return 1 at each class index and 0 elsewhere, along a new last axis; int64.

    By default, the number of classes is the largest index plus 1, which waits for the values.

    >>> gt.nn.functional.one_hot(gt.tensor([0, 2], dtype=gt.int64), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]], dtype=int64)
    """
    if tensor.dtype.is_floating_point or tensor.dtype == gt.bool:
        raise TypeError(f"one_hot: class indices must be integers, these are {tensor.dtype.name}")
    if num_classes < -1 or (num_classes <= 0 and tensor.numel() == 0):
        raise ValueError(f"one_hot: num_classes is {num_classes}, expected 1 or more")
    if num_classes == -1:
        num_classes = int(tensor.amax().item()) + 1
    index = tensor.long().unsqueeze(-1)
    zeros = filled(index, (*tensor.shape, num_classes), 0)
    return zeros.scatter_add(-1, index, gt.ones_like(index))
