"""The multivariate normal distribution with a low-rank plus diagonal covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .distribution import Distribution
from .multivariate_normal import batch_mahalanobis, batch_mv, half_log_det
from .utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Multivariate normal distribution with the covariance W W^T + D.

    W is `cov_factor` (..., n, m), D the diagonal matrix of `cov_diag` (..., n). The covariance's
    determinant and inverse are computed from those of the m x m capacitance matrix
    C = I + W^T D^-1 W (matrix determinant lemma, Woodbury identity:
    https://en.wikipedia.org/wiki/Woodbury_matrix_identity).

    >>> from gt.distributions import LowRankMultivariateNormal
    >>> LowRankMultivariateNormal(gt.zeros(2), gt.ones(2, 1), gt.ones(2)).variance
    tensor([2., 2.], dtype=float32)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    mean: Tensor = alias("loc", "The mean, `loc`.")
    mode: Tensor = alias("loc", "The mode, `loc`.")

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                f"dimensions; got shape {tuple(cov_factor.shape)}"
            )
        if cov_factor.shape[-2] != n:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {n} x m, "
                f"got shape {tuple(cov_factor.shape)}"
            )
        if tuple(cov_diag.shape[-1:]) != (n,):
            raise ValueError(
                f"cov_diag must be a batch of vectors with shape ({n},), "
                f"got shape {tuple(cov_diag.shape)}"
            )
        batches = (loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        try:
            batch = tuple(gt.broadcast_shapes(*batches))
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {tuple(loc.shape)}, "
                f"cov_factor {tuple(cov_factor.shape)}, cov_diag {tuple(cov_diag.shape)}"
            ) from error
        self.loc = loc.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch, n))
        super().__init__(batch, (n,), validate_args=validate_args)
        # Kept with the caller's batch shapes, to compute with smaller tensors.
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        capacitance = self._scaled_factor() @ cov_factor
        identity = gt.eye(capacitance.shape[-1], dtype=capacitance.dtype)
        self._capacitance_tril = gt.linalg.cholesky(capacitance + identity)

    def _scaled_factor(self) -> Tensor:
        """Return W^T D^-1."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _solved_factor(self) -> Tensor:
        """Return L^-1 W^T D^-1, with the Cholesky factor L of the capacitance matrix."""
        return gt.linalg.solve_triangular(
            self._capacitance_tril, self._scaled_factor(), upper=False
        )

    def _log_det(self) -> Tensor:
        """Return the logarithm of the covariance's determinant, det(C) det(D)."""
        diagonal = self._unbroadcasted_cov_diag.log().sum(-1)
        return 2 * half_log_det(self._capacitance_tril) + diagonal

    def _mahalanobis(self, x: Tensor) -> Tensor:
        """Return x^T (W W^T + D)^-1 x."""
        by_diagonal = (x**2 / self._unbroadcasted_cov_diag).sum(-1)
        by_factor = batch_mv(self._scaled_factor(), x)
        return by_diagonal - batch_mahalanobis(self._capacitance_tril, by_factor)

    def _over_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def variance(self) -> Any:
        """The diagonal of the covariance."""
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower triangular Cholesky factor of the covariance.

        It is D^(1/2) times the factor of I + D^(-1/2) W W^T D^(-1/2), whose eigenvalues are at
        least 1.
        """
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        identity = gt.eye(self._event_shape[0], dtype=root.dtype)
        return self._over_batch(root * gt.linalg.cholesky(scaled @ scaled.mT + identity))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        return self._over_batch(factor @ factor.mT + gt.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        solved = self._solved_factor()
        diagonal = gt.diag_embed(1 / self._unbroadcasted_cov_diag)
        return self._over_batch(diagonal - solved.mT @ solved)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw loc + W x + D^(1/2) y, with standard normal x and y."""
        shape, dtype = self._extended_shape(sample_shape), self.loc.dtype
        of_factor = gt.randn((*shape[:-1], self.cov_factor.shape[-1]), dtype=dtype)
        of_diagonal = gt.randn(shape, dtype=dtype)
        return (
            self.loc
            + batch_mv(self._unbroadcasted_cov_factor, of_factor)
            + self._unbroadcasted_cov_diag.sqrt() * of_diagonal
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._mahalanobis(value - self.loc))

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
