"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["MultivariateNormal"]


def batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Multiply matrices (..., n, m) with vectors (..., m), broadcasting."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """Return x^T (L L^T)^-1 x for lower triangular L (..., n, n) and vectors x (..., n)."""
    if factor.dim() == 2:  # one solve for all vectors
        n = x.shape[-1]
        solved = gt.linalg.solve_triangular(factor, x.reshape((-1, n)).mT, upper=False)
        return (solved**2).sum(-2).reshape(x.shape[:-1])
    batch = gt.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
    factor = factor.expand((*batch, *factor.shape[-2:]))
    columns = x.expand((*batch, x.shape[-1])).unsqueeze(-1)
    return (gt.linalg.solve_triangular(factor, columns, upper=False) ** 2).sum((-2, -1))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the lower triangular L with L L^T = P^-1.

    L is the transpose of U^-1, with U upper triangular and P = U U^T. U is the Cholesky factor of
    P with its rows and columns in reverse order, reversed again.
    """
    upper = gt.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1))
    identity = gt.eye(precision.shape[-1], dtype=precision.dtype)
    identity = identity.expand(precision.shape)
    return gt.linalg.solve_triangular(upper.mT, identity, upper=False)


def half_log_det(factor: Tensor) -> Tensor:
    """Return half of the logarithm of the determinant of L L^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def one_matrix(
    covariance_matrix: Tensor | None, precision_matrix: Tensor | None, scale_tril: Tensor | None
) -> tuple[str, Tensor]:
    """Return the name and value of the only matrix that is not None; else raise a ValueError."""
    given = {
        "covariance_matrix": covariance_matrix,
        "precision_matrix": precision_matrix,
        "scale_tril": scale_tril,
    }
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified; "
            f"got {' and '.join(name for name, _ in found) or 'none'}."
        )
    name, value = found[0]
    if value.dim() < 2:
        raise ValueError(
            f"{name} must be at least two-dimensional, with optional leading batch dimensions; "
            f"got shape {tuple(value.shape)}"
        )
    return name, value


class WithCovariance(Distribution):
    """The base of distributions with a covariance matrix, kept as its Cholesky factor.

    The factor keeps the caller's batch shape.
    """

    _unbroadcasted_scale_tril: Tensor

    def _keep_factor(self, name: str, matrix: Tensor) -> None:
        if name == "covariance_matrix":
            matrix = gt.linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _over_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower triangular Cholesky factor of the covariance."""
        return self._over_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return self._over_batch(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._over_batch(gt.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(WithCovariance):
    """Multivariate normal distribution with mean `loc` (..., n).

    The covariance is given by one of `covariance_matrix`, its inverse `precision_matrix` and its
    lower triangular Cholesky factor `scale_tril`, of shape (..., n, n). Computations use the
    factor, so passing `scale_tril` saves the factorization.

    >>> from gt.distributions import MultivariateNormal
    >>> MultivariateNormal(gt.zeros(2), 4 * gt.eye(2)).stddev
    tensor([2., 2.], dtype=float32)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    mean: Tensor = alias("loc", "The mean.")
    mode: Tensor = alias("loc", "The mode, which is the mean.")

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril)
        batch = tuple(gt.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        self._keep_factor(name, matrix)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        variance = (self._unbroadcasted_scale_tril**2).sum(-1)
        return variance.expand(self._extended_shape())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw loc + L x, with x standard normal."""
        drawn = gt.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = batch_mahalanobis(factor, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = constant + half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)
