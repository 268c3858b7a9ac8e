"""Concatenation, and combinations of the values of several tensors."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor, arange_beside, primitives
from gt.ops.registry import function, operation
from gt.ops.sizes import axis_of, need_axes


@function(aliases=("concat", "concatenate"), autocast="widest")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Join tensors one after another along an axis; an empty vector fits any shape.

    >>> gt.cat([gt.ones(2), gt.zeros(1)])
    tensor([1., 1., 0.], dtype=float32)
    """
    tensors = _several("cat", tensors)
    ranks = {getattr(x, "ndim", None) for x in tensors}
    if len(ranks) == 1 and (ranks != {1} or dim in (0, -1)):
        return primitives.cat(tensors, dim)
    shape = next((x.shape for x in tensors if x.shape != (0,)), (0,))
    if len(shape) > 1:
        at = axis_of("cat", dim, len(shape))
        nothing = (*shape[:at], 0, *shape[at + 1 :])
        tensors = [x if x.shape != (0,) else x.reshape(nothing) for x in tensors]
    return primitives.cat(tensors, dim if shape != (0,) else 0)


@function(autocast="widest")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis.

    >>> gt.stack([gt.ones(2), gt.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]], dtype=float32)
    """
    return gt._gt.stack(_several("stack", tensors), dim)


@function
def hstack(tensors: Any) -> Tensor:
    """Join tensors column after column: vectors along axis 0, others along axis 1.

    >>> gt.hstack([gt.tensor(1.0), gt.zeros(2)])
    tensor([1., 0., 0.], dtype=float32)
    """
    tensors = [gt.atleast_1d(x) for x in _several("hstack", tensors)]
    return cat(tensors, min(tensors[0].ndim - 1, 1))


@function(aliases=("row_stack",))
def vstack(tensors: Any) -> Tensor:
    """Join tensors row after row; vectors are rows.

    >>> gt.vstack([gt.ones(2), gt.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]], dtype=float32)
    """
    return cat([gt.atleast_2d(x) for x in _several("vstack", tensors)], 0)


@function
def dstack(tensors: Any) -> Tensor:
    """Join tensors along axis 2, which vectors and matrices get with length 1.

    >>> gt.dstack([gt.ones(2), gt.zeros(2)])
    tensor([[[1., 0.],
             [1., 0.]]], dtype=float32)
    """
    return cat([gt.atleast_3d(x) for x in _several("dstack", tensors)], 2)


@function
def column_stack(tensors: Any) -> Tensor:
    """Join tensors along axis 1; vectors are columns.

    >>> gt.column_stack([gt.ones(2), gt.zeros(2)])
    tensor([[1., 0.],
            [1., 0.]], dtype=float32)
    """
    tensors = _several("column_stack", tensors)
    return cat([x.reshape(x.numel(), 1) if x.ndim < 2 else x for x in tensors], 1)


def _several(name: str, tensors: Any) -> list[Tensor]:
    """Return the tensors as a list; raise if there are none."""
    if not isinstance(tensors, tuple | list):
        kind = type(tensors).__name__
        raise TypeError(f"{name}: tensors must be a tuple or list of tensors, not {kind}")
    if not tensors:
        raise RuntimeError(f"{name}: no tensors were given")
    return list(tensors)


@function
def block_diag(*tensors: Tensor) -> Tensor:
    """Put matrices on the diagonal of a larger matrix of zeros; vectors are rows.

    >>> gt.block_diag(gt.ones(1, 2), gt.tensor(3.0))
    tensor([[1., 1., 0.],
            [0., 0., 3.]], dtype=float32)
    """
    for given in tensors:
        need_axes("block_diag", given, 0, 2)
    blocks = [gt.atleast_2d(given) for given in tensors]
    ends = [sum(block.shape[1] for block in blocks[: at + 1]) for at in range(len(blocks))]
    rows = [
        gt.constant_pad_nd(block, (end - block.shape[1], ends[-1] - end))
        for block, end in zip(blocks, ends, strict=True)
    ]
    return cat(rows) if rows else gt.zeros(1, 0)


@function
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each vector expanded over the axes of the others.

    Args:
        tensors: vectors or numbers, one by one or in a list.
        indexing: "ij", which is the default, or "xy", where the first two axes are exchanged.

    >>> gt.meshgrid(gt.arange(2), gt.arange(3), indexing="ij")[0]
    tensor([[0, 0, 0],
            [1, 1, 1]], dtype=int64)
    """
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    if indexing not in (None, "ij", "xy"):
        raise ValueError(f"meshgrid: indexing is '{indexing}', expected 'ij' or 'xy'")
    for given in _several("meshgrid", tensors):
        need_axes("meshgrid", given, 0, 1)
        if given.dtype != tensors[0].dtype:
            raise ValueError(f"meshgrid: dtypes {tensors[0].dtype} and {given.dtype} differ")
    if indexing == "xy" and len(tensors) > 1:
        second, first, *others = meshgrid(tensors[1], tensors[0], *tensors[2:])
        return first, second, *others
    shape = tuple(given.numel() for given in tensors)
    return tuple(_along(x, at, len(shape)).expand(shape) for at, x in enumerate(tensors))


def _along(vector: Tensor, axis: int, ndim: int) -> Tensor:
    """Reshape a vector to `ndim` axes, all but one of length 1."""
    return vector.reshape([vector.numel() if at == axis else 1 for at in range(ndim)])


@function
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of one value from each vector, a row for each.

    >>> gt.cartesian_prod(gt.arange(2), gt.arange(2))
    tensor([[0, 0],
            [0, 1],
            [1, 0],
            [1, 1]], dtype=int64)
    """
    for given in _several("cartesian_prod", tensors):
        need_axes("cartesian_prod", given, 1, 1)
    if len(tensors) == 1:
        return tensors[0]
    return gt._gt.stack([grid.ravel() for grid in meshgrid(*tensors)], 1)


@function
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of `r` values of a vector, ignoring order, a row for each.

    Args:
        input: a vector.
        r: the number of values in each row.
        with_replacement: whether a value may be taken again.

    >>> gt.combinations(gt.arange(3))
    tensor([[0, 1],
            [0, 2],
            [1, 2]], dtype=int64)
    """
    need_axes("combinations", input, 1, 1)
    if r < 0:
        raise ValueError(f"combinations: r is {r}, expected 0 or more")
    if r == 0:
        return input[:0]
    n = input.shape[0]
    places = [_along(arange_beside(input, n), axis, r) for axis in range(r)]
    order = gt.le if with_replacement else gt.lt
    rises = [order(a, b) for a, b in zip(places[:-1], places[1:], strict=True)]
    chosen = functools.reduce(gt.logical_and, rises, (places[0] >= 0).expand((n,) * r))
    count = math.comb(n + r - 1, r) if with_replacement and n else math.comb(n, r)
    return input[gt.nonzero_static(chosen, size=count)]


@operation
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: blocks of `other` times each value of `input`.

    >>> gt.kron(gt.tensor([1.0, 10.0]), gt.tensor([1.0, 2.0]))
    tensor([ 1.,  2., 10., 20.], dtype=float32)
    """
    ndim = max(input.ndim, other.ndim)
    outer = (1,) * (ndim - input.ndim) + input.shape
    inner = (1,) * (ndim - other.ndim) + other.shape
    blocks = input.reshape([size for length in outer for size in (length, 1)])
    within = other.reshape([size for length in inner for size in (1, length)])
    return (blocks * within).reshape([a * b for a, b in zip(outer, inner, strict=True)])


@function
def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Tensor:
    """Cut tensors into zero-padded chunks along an axis, and join the chunks of each number.

    >>> gt._chunk_cat([gt.ones(3), gt.ones(2)], 0, 2)
    tensor([[1., 1., 1.],
            [1., 0., 1.]], dtype=float32)
    """
    tensors = _several("_chunk_cat", tensors)
    at = axis_of("_chunk_cat", dim, min(x.ndim for x in tensors))
    chunked = []
    for x in tensors:
        missing = -x.shape[at] % num_chunks
        padded = gt.constant_pad_nd(x, (0, 0) * (x.ndim - at - 1) + (0, missing))
        chunked.append(padded.reshape((*x.shape[:at], num_chunks, -1)))
    return cat(chunked, at + 1)
