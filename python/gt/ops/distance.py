"""Distances and angles between vectors."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt.ops.create import beside
from gt.ops.linalg_norms import power, vector_norm
from gt.ops.registry import function, operation
from gt.ops.sizes import need_axes

#: The number of rows above which matrix products compute Euclidean distances faster.
_MANY = 25


@operation(autocast="float32")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the norm of order p of the difference of two tensors, which broadcast.

    >>> gt.dist(gt.tensor([1.0, 2.0]), gt.tensor([4.0, 6.0]))
    tensor(5., dtype=float32)
    """
    return vector_norm(input - other, p)


@function(autocast="float32")
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distance of each row of one matrix from each row of another.

    Args:
        x1: a tensor of shape (..., P, M).
        x2: a tensor of shape (..., R, M); the axes before the matrices broadcast.
        p: the order of the norm of the difference, 0 or more.
        compute_mode: for p = 2, "use_mm_for_euclid_dist" computes a product of matrices, which is
            fast and less exact, "donot_use_mm_for_euclid_dist" P * R * M differences; by default
            the product where P or R is above 25.

    >>> gt.cdist(gt.tensor([[0.0, 0.0]]), gt.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]], dtype=float32)
    """
    need_axes("cdist", x1, 2)
    need_axes("cdist", x2, 2)
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"cdist: rows of {x1.shape[-1]} and {x2.shape[-1]} values do not fit")
    if p < 0:
        raise ValueError(f"cdist: p is {p}, expected 0 or more")
    if p == 2 and _by_product(compute_mode, max(x1.shape[-2], x2.shape[-2])):
        return _euclid(x1, x2)
    differences = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return vector_norm(differences, p if x1.shape[-1] else 1, -1)


def _by_product(compute_mode: str, rows: int) -> bool:
    modes = {
        "use_mm_for_euclid_dist_if_necessary": rows > _MANY,
        "use_mm_for_euclid_dist": True,
        "donot_use_mm_for_euclid_dist": False,
    }
    if compute_mode not in modes:
        raise ValueError(f"cdist: compute_mode is {compute_mode!r}, expected one of {[*modes]}")
    return modes[compute_mode]


def _euclid(x1: Tensor, x2: Tensor) -> Tensor:
    """Return Euclidean distances by one product: of (-2a, |a|^2, 1) and (b, 1, |b|^2).

    This is PyTorch's formula; its errors scale with |a|^2, even where distances are small.
    """
    a, b = (x.float() if x.dtype.itemsize == 2 else x for x in (x1, x2))
    of_a, of_b = ((x * x).sum(-1, keepdim=True) for x in (a, b))
    left = primitives.cat([a * -2, of_a, gt.ones_like(of_a)], -1)
    right = primitives.cat([b, gt.ones_like(of_b), of_b], -1)
    return power((left @ right.mT).relu(), 0.5)._cast(x1.dtype)


@function(namespace="gt.nn.functional", autocast="float32")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """Return the distance of each row of a matrix from each later row.

    The distances are in the order of the pairs (0, 1), (0, 2), ..., (1, 2), ...

    >>> gt.nn.functional.pdist(gt.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.], dtype=float32)
    """
    need_axes("pdist", input, 2, 2)
    if p < 0:
        raise ValueError(f"pdist: p is {p}, expected 0 or more")
    pairs = _later_pairs(input)
    differences = input.index_select(0, pairs[0]) - input.index_select(0, pairs[1])
    return vector_norm(differences, p if input.shape[1] else 1, -1)


def _later_pairs(input: Tensor) -> Tensor:
    """Return all pairs of a row and a later row, as two rows of indices."""
    with beside(input):
        return gt.triu_indices(input.shape[0], input.shape[0], 1)


@function(namespace="gt.nn.functional", autocast="float32")
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the norm of `x1 - x2 + eps` along the last axis.

    Args:
        x1: vectors, along the last axis.
        x2: vectors; broadcast.
        p: the order of the norm.
        eps: added to each difference.
        keepdim: whether the last axis is kept with length 1.

    >>> gt.nn.functional.pairwise_distance(gt.zeros(1, 2), gt.tensor([[3.0, 4.0]]), eps=0)
    tensor([5.], dtype=float32)
    """
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@function(namespace="gt.nn.functional", autocast="float32")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along an axis: their product over their norms.

    Norms below `eps` count as `eps`, but their gradients are those of the norms.

    Args:
        x1: vectors.
        x2: vectors; broadcast.
        dim: the axis of a vector.
        eps: the least norm to divide by.

    >>> gt.nn.functional.cosine_similarity(gt.tensor([[1.0, 0.0]]), gt.tensor([[1.0, 1.0]]))
    tensor([0.70710677], dtype=float32)
    """
    common = gt.result_type(x1, x2)
    one, other = gt.broadcast_tensors(x1._cast(common), x2._cast(common))
    return (_unit(one, dim, eps) * _unit(other, dim, eps)).sum(dim)._cast(common)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    wide = x.float() if x.dtype.itemsize == 2 else x
    norm = vector_norm(wide, 2, dim, True)
    return wide / (norm + (primitives.maximum(norm, eps) - norm).detach())
