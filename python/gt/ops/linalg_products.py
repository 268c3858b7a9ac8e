"""Products of matrices and vectors, following `torch.linalg`."""

from __future__ import annotations

from collections.abc import Sequence

import gt
from gt._gt import Tensor, primitives
from gt.ops.matmul import matmul
from gt.ops.registry import function
from gt.ops.sizes import axis_of, need_axes

LINALG = "gt.linalg"

function(namespace=LINALG)(matmul)


@function(namespace=LINALG, autocast="lower")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Multiply two or more matrices in the order that takes the fewest multiplications.

    The first and the last may be vectors. The order is that of Cormen et al., Introduction to
    Algorithms, section 15.2.

    >>> gt.linalg.multi_dot([gt.ones(2, 3), gt.ones(3, 4), gt.ones(4)])
    tensor([12., 12.], dtype=float32)
    """
    if len(tensors) < 2:
        raise ValueError(f"multi_dot: expected two tensors or more, not {len(tensors)}")
    first, *between, last = tensors
    for given, vectors in ((first, True), *((x, False) for x in between), (last, True)):
        need_axes("multi_dot", given, 1 if vectors else 2, 2)
    one = first.unsqueeze(0) if first.ndim == 1 else first
    other = last.unsqueeze(1) if last.ndim == 1 else last
    product = chain([one, *between, other])
    product = product if first.ndim == 2 else product.squeeze(0)
    return product if last.ndim == 2 else product.squeeze(-1)


def chain(matrices: list[Tensor]) -> Tensor:
    """Multiply matrices; `cost[i, j]` is the least cost of those from i to j, and the split."""
    size = [matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices)]
    cost = {(i, i): (0, i) for i in range(len(matrices))}
    for distance in range(1, len(matrices)):
        for i in range(len(matrices) - distance):
            j = i + distance
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + size[i] * size[k + 1] * size[j + 1], k)
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        cut = cost[i, j][1]
        return matrices[i] if i == j else product(i, cut) @ product(cut + 1, j)

    return product(0, len(matrices) - 1)


@function(namespace=LINALG, autocast="lower")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Multiply vectors along an axis: the sum of `conj(x[i]) * y[i]`; other axes broadcast.

    >>> gt.linalg.vecdot(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), gt.tensor([1.0, 10.0]))
    tensor([21., 43.], dtype=float32)
    """
    common = gt.result_type(x, y)
    if not (common.is_floating_point or common.is_complex):
        raise TypeError(f"vecdot: expected floats, not {common.name}\n  hint: x.float()")
    wide = gt.float32 if common.itemsize == 2 else common
    return (gt.conj(x._cast(wide)) * y._cast(wide)).sum(dim)._cast(common)


@function(namespace=LINALG, autocast="widest")
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross products of vectors of three elements along an axis.

    `out[0] = input[1] * other[2] - input[2] * other[1]`, and cyclically; other axes broadcast.

    >>> gt.linalg.cross(gt.tensor([1.0, 0.0, 0.0]), gt.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.], dtype=float32)
    """
    if input.ndim != other.ndim:
        raise ValueError(
            f"cross: shapes {input.shape} and {other.shape} must have the same number of axes"
        )
    at = axis_of("cross", dim, input.ndim)
    if input.size(at) != 3 or other.size(at) != 3:
        raise ValueError(
            f"cross: axis {dim} of shapes {input.shape} and {other.shape} must have 3 elements"
        )
    one, two = (1, 2, 0), (2, 0, 1)
    plus = _turned(input, at, one) * _turned(other, at, two)
    return plus - _turned(input, at, two) * _turned(other, at, one)


def _turned(x: Tensor, dim: int, order: tuple[int, ...]) -> Tensor:
    return primitives.cat([x.narrow(dim, place, 1) for place in order], dim)


@function(namespace=LINALG)
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices, as the last axis.

    >>> gt.linalg.diagonal(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), offset=1)
    tensor([2.], dtype=float32)
    """
    return gt.diagonal(A, offset, dim1, dim2)


@function(namespace=LINALG)
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 0 to N - 1 of each element along a new last axis; N is its old length.

    >>> gt.linalg.vander(gt.tensor([2.0, 3.0]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]], dtype=float32)
    """
    x = gt.atleast_1d(x)
    N = x.shape[-1] if N is None else N
    if N < 2:
        raise ValueError(f"vander: N is {N}, expected 2 or more")
    return powers_of(x, N)


def powers_of(x: Tensor, count: int) -> Tensor:
    """Return x ** 0 to x ** (count - 1) along a new last axis, as cumulative products."""
    x = (x if x.dtype.is_floating_point or x.dtype.is_complex else x.long()).unsqueeze(-1)
    factors = [gt.ones_like(x), x.expand((*x.shape[:-1], max(count - 1, 0)))]
    return gt.cumprod(primitives.cat(factors, -1)[..., :count], -1)
