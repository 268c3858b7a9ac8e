"""Constraints on matrices."""

from __future__ import annotations

import gt
from gt._gt import Tensor

from ._constraint import Constraint


class _OnMatrices(Constraint):
    event_dim = 2


class LowerTriangular(_OnMatrices):
    """Matrices that are zero above the diagonal."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each matrix is zero above the diagonal."""
        return (value.tril() == value).flatten(-2).all(-1)


class LowerCholesky(LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each matrix is lower triangular with a positive diagonal."""
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class CorrCholesky(LowerCholesky):
    """Cholesky factors of correlation matrices: each row has norm 1."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each matrix is a Cholesky factor with rows of norm 1."""
        tolerance = gt.finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = gt.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class Square(_OnMatrices):
    """Square matrices."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether the matrices are square: the same answer for the whole batch."""
        return gt.full(value.shape[:-2], _is_square(value), dtype=gt.bool)


class Symmetric(Square):
    """Symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each matrix equals its transpose, with an absolute tolerance of 1e-6."""
        if not _is_square(value):
            return super().check(value)
        return gt.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class PositiveSemidefinite(Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each matrix is symmetric and has no negative eigenvalue."""
        symmetric = super().check(value)
        if not _is_square(value):
            return symmetric
        return symmetric & (gt.linalg.eigvalsh(value.detach()) >= 0).all(-1)


class PositiveDefinite(Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each matrix is symmetric and has a Cholesky factor."""
        symmetric = super().check(value)
        if not _is_square(value):
            return symmetric
        return symmetric & (gt.linalg.cholesky_ex(value.detach()).info == 0)


def _is_square(value: Tensor) -> bool:
    return value.shape[-2] == value.shape[-1]
