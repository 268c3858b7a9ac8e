"""Determinants and their logarithms, from the diagonal of LU factors."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor, primitives
from gt._results import SignLogAbsDet
from gt.ops.create import beside
from gt.ops.linalg_checks import need_matrices
from gt.ops.linalg_factors import LINALG
from gt.ops.linalg_lu import factored
from gt.ops.registry import function, operation


def _diagonal_and_sign(name: str, A: Tensor) -> tuple[Tensor, Tensor]:
    """Return the diagonal of U, and the sign of the row permutation: -1 for an odd one."""
    need_matrices(name, A, square=True)
    LU, pivots, _ = factored(name, A)
    with beside(A):
        own = gt.arange(1, A.shape[-1] + 1)
    swaps = (pivots != own).sum(-1)
    return gt.diagonal(LU, 0, -2, -1), (1 - 2 * (swaps % 2))._cast(A.dtype)


def _det(name: str, A: Tensor) -> Tensor:
    diagonal, sign = _diagonal_and_sign(name, A)
    return sign * diagonal.prod(-1)


def _slogdet(name: str, A: Tensor) -> SignLogAbsDet:
    diagonal, sign = _diagonal_and_sign(name, A)
    return SignLogAbsDet(sign * gt.sgn(diagonal).prod(-1), diagonal.abs().log().sum(-1))


@function(namespace=LINALG, autocast="float32")
def det(A: Tensor) -> Tensor:
    """Return the determinants of square matrices [..., n, n].

    >>> gt.linalg.det(gt.tensor([[0.0, 2.0], [1.0, 4.0]]))
    tensor(-2., dtype=float32)
    """
    return _det("linalg.det", A)


@function(namespace=LINALG, autocast="float32")
def slogdet(A: Tensor) -> SignLogAbsDet:
    """Return the signs of determinants and the logarithms of their absolute values.

    For a singular matrix these are 0 and minus infinity.

    >>> gt.linalg.slogdet(-gt.eye(3)).sign
    tensor(-1., dtype=float32)
    """
    return _slogdet("linalg.slogdet", A)


@operation(autocast="float32")
def logdet(input: Tensor) -> Tensor:
    """Return the logarithms of determinants: minus infinity for 0, NaN for negative ones.

    >>> gt.logdet(gt.eye(3))
    tensor(0., dtype=float32)
    """
    sign, logabsdet = _slogdet("logdet", input)
    if input.dtype.is_complex:
        return sign.log() + logabsdet
    return primitives.where(sign == -1, math.nan, logabsdet)


operation(det)
operation(slogdet)
