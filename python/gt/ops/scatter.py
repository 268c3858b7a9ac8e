"""Writing at indices along an axis, into the flattened tensor, or where a mask is True."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Number
from gt.ops.registry import operation
from gt.ops.sizes import axis_of, filled, need_index


@operation(in_place=True, autocast="widest")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Add values at indices along an axis: `out[index[i][j]][j] += src[i][j]` for dim 0.

    Where the index is shorter than `src`, the rest of `src` is not used.

    >>> gt.scatter_add(gt.zeros(3), 0, gt.tensor([0, 2, 2], dtype=gt.int64), gt.ones(3))
    tensor([1., 0., 2.], dtype=float32)
    """
    if index.numel() == 0:
        return input.clone()
    at, whole, index, src = _aligned("scatter_add", input, dim, index, src)
    return primitives.scatter_add(whole, at, index, src).reshape(input.shape)


def _aligned(name: str, input: Tensor, dim: int, index: Tensor, src: Any) -> tuple[Any, ...]:
    """Return axis, tensor, index and source with at least one axis; the source cut to the index."""
    need_index(name, index)
    at, whole = axis_of(name, dim, input.ndim), input.reshape(input.shape or 1)
    index = index.reshape(index.shape or 1)
    if not isinstance(src, Tensor):
        return at, whole, index, src
    src = src.reshape(src.shape or 1)
    if index.ndim != src.ndim or any(n > m for n, m in zip(index.shape, src.shape, strict=True)):
        raise ValueError(f"{name}: an index of shape {index.shape} does not fit src's {src.shape}")
    return at, whole, index, src[tuple(slice(length) for length in index.shape)]


@operation(in_place=True)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Replace values at indices along an axis: `out[index[i][j]][j] = src[i][j]` for dim 0.

    Args:
        input: the tensor.
        dim: the axis that the indices count along.
        index: int64 or int32; the last of equal indices wins.
        src: the values, at least as long as the index along each axis.
        value: a number instead of `src`.
        reduce: "add" or "multiply" instead of replacing.

    >>> gt.scatter(gt.zeros(3), 0, gt.tensor([2, 0], dtype=gt.int64), gt.tensor([1.0, 2.0]))
    tensor([2., 0., 1.], dtype=float32)
    """
    given = value if src is None else src
    if given is None or (src is not None and value is not None):
        raise TypeError("scatter: give src or value")
    if reduce not in (None, "add", "multiply"):
        raise ValueError(f"scatter: reduce is '{reduce}', expected 'add' or 'multiply'")
    if index.numel() == 0:
        return input.clone()
    if reduce is not None and not isinstance(given, Tensor):
        given = filled(input, index.shape, given)
    at, whole, index, given = _aligned("scatter", input, dim, index, given)
    if reduce is not None:
        reduce = "sum" if reduce == "add" else "prod"
        return primitives.scatter_reduce(whole, at, index, given, reduce).reshape(input.shape)
    return primitives.scatter(whole, at, index, given).reshape(input.shape)


@operation(in_place=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Combine all values that have the same index along an axis.

    Args:
        input: the tensor.
        dim: the axis that the indices count along.
        index: int64 or int32.
        src: the values, at least as long as the index along each axis.
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether the tensor's own value counts where there are others.

    >>> index = gt.tensor([0, 0], dtype=gt.int64)
    >>> gt.scatter_reduce(gt.zeros(2), 0, index, gt.tensor([3.0, 5.0]), "amax")
    tensor([5., 0.], dtype=float32)
    """
    if index.numel() == 0:
        return input.clone()
    at, whole, index, src = _aligned("scatter_reduce", input, dim, index, src)
    reduced = primitives.scatter_reduce(whole, at, index, src, reduce, include_self)
    return reduced.reshape(input.shape)


@operation(in_place=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Replace values at indices into the flattened tensor, in row-major order.

    Args:
        input: the tensor.
        index: int64 or int32; the last of equal indices wins.
        source: the values, one for each index.
        accumulate: whether to add instead of replacing.

    >>> gt.put(gt.zeros(2, 2), gt.tensor([3], dtype=gt.int64), gt.ones(1))
    tensor([[0., 0.],
            [0., 1.]], dtype=float32)
    """
    need_index("put", index)
    if index.numel() != source.numel():
        raise IndexError(
            f"put: index has {index.numel()} elements and source {source.numel()}, expected equal "
            "numbers"
        )
    places = primitives.wrap_index(index.ravel(), input.numel())
    write = primitives.index_add if accumulate else primitives.index_copy
    return write(input.ravel(), 0, places, source.ravel()).reshape(input.shape)


@operation(in_place=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Replace the values where a mask is True by the values of `source`, in row-major order.

    >>> gt.masked_scatter(gt.zeros(3), gt.tensor([True, False, True]), gt.tensor([1.0, 2.0]))
    tensor([1., 0., 2.], dtype=float32)
    """
    if mask.dtype != gt.bool:
        raise TypeError(f"masked_scatter: mask is of dtype {mask.dtype}, expected bool")
    if source.dtype != input.dtype:
        raise TypeError(
            f"masked_scatter: source is of dtype {source.dtype}, expected {input.dtype}, input's"
        )
    input, mask = gt.broadcast_tensors(input, mask)
    place = gt.where(mask, mask.ravel().cumsum(0).reshape(mask.shape), 0)
    values = primitives.cat([filled(source, (1,), 0), source.ravel()], 0)
    taken = primitives.index_select(values, 0, place.ravel()).reshape(input.shape)
    return gt.where(mask, taken, input)
