"""Chains of matrix products, powers, traces, and cross products."""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt.ops.create import beside
from gt.ops.linalg_products import LINALG, chain, powers_of
from gt.ops.registry import function, operation
from gt.ops.sizes import need_axes


@function(autocast="lower")
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply matrices in the order that takes the fewest multiplications.

    >>> gt.chain_matmul(gt.ones(2, 3), gt.ones(3, 4), gt.ones(4, 1)).shape
    (2, 1)
    """
    if not matrices:
        raise ValueError("chain_matmul: expected a matrix or more, not none")
    for matrix in matrices:
        need_axes("chain_matmul", matrix, 2, 2)
    return chain([*matrices])


@operation(autocast="float32")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return the n-th power of square matrices, by repeated squaring; for n < 0 of their inverses.

    >>> gt.matrix_power(gt.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]], dtype=float32)
    """
    need_square("matrix_power", input)
    if n < 0:
        return matrix_power(gt.linalg.inv(input), -n)
    if n == 0:
        always = gt.ones_like(input, dtype=gt.bool)
        return primitives.where(always, identity(input), input)  # with a gradient of zeros
    if n == 1:
        return input.clone()
    half = matrix_power(input, n // 2) if n > 3 else input
    return half @ half @ input if n % 2 else half @ half


def need_square(name: str, input: Tensor) -> None:
    """Raise unless the last two axes are square matrices."""
    need_axes(name, input, 2)
    if input.shape[-1] != input.shape[-2]:
        raise ValueError(f"{name}: expected square matrices, not shape {input.shape}")


def identity(input: Tensor) -> Tensor:
    """Return the identity for square matrices, in their dtype and session."""
    with beside(input):
        return gt.eye(input.shape[-1], dtype=input.dtype)


function(namespace=LINALG)(matrix_power)


@operation(autocast="widest")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross products of vectors of three elements; see `gt.linalg.cross`.

    Without `dim`, the vectors are along the first axis of length 3.

    >>> gt.cross(gt.tensor([1.0, 0.0, 0.0]), gt.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.], dtype=float32)
    """
    if dim is None and 3 not in input.shape:
        raise ValueError(f"cross: no axis of shape {input.shape} has 3 elements")
    return gt.linalg.cross(input, other, dim=input.shape.index(3) if dim is None else dim)


@operation
def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix.

    >>> gt.trace(gt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5., dtype=float32)
    """
    need_axes("trace", input, 2, 2)
    return gt.diagonal(input).sum()


@function
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers N - 1 to 0 of each element, or 0 to N - 1; N is the length by default.

    Args:
        x: a tensor of one axis.
        N: the number of powers.
        increasing: whether the powers start at 0.

    >>> gt.vander(gt.tensor([2.0, 3.0]), 3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]], dtype=float32)
    """
    need_axes("vander", x, 1, 1)
    found = powers_of(x, x.shape[0] if N is None else N)
    return found if increasing else found.flip((1,))
