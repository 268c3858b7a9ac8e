"""The Wishart distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt._lines import warn

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import WithCovariance, half_log_det, one_matrix
from .utils import Number

__all__ = ["Wishart"]


class Wishart(WithCovariance, ExponentialFamily):
    """Wishart distribution over p x p matrices: the sum of x x^T over `df` normal vectors x.

    The covariance of x is given by one of `covariance_matrix`, its inverse `precision_matrix` and
    its lower triangular Cholesky factor `scale_tril`. `df` must be above p - 1 and need not be an
    integer. Samples are drawn by the Bartlett decomposition
    (https://en.wikipedia.org/wiki/Wishart_distribution).

    >>> from gt.distributions import Wishart
    >>> Wishart(gt.tensor(3.0), gt.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]], dtype=float32)
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril)
        if isinstance(df, Number):
            df = gt.tensor(df, dtype=matrix.dtype)
        batch = tuple(gt.broadcast_shapes(matrix.shape[:-2], df.shape))
        size = matrix.shape[-1]
        self.df = df.expand(batch)
        least = float(df.min())
        if least <= size - 1:
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        if least < size:
            warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
            )
        self.__dict__[name] = matrix.expand((*batch, size, size))
        super().__init__(batch, (size, size), validate_args=validate_args)
        self._keep_factor(name, matrix)
        lost = gt.arange(size, dtype=matrix.dtype)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - lost, validate_args=False)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraints: valid matrices, and `df` above p - 1."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def _df_matrix(self) -> Tensor:
        return self.df.reshape((*self.df.shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        """The mean df V, with the covariance V."""
        return self._df_matrix() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """The mode (df - p - 1) V, NaN for df <= p + 1."""
        factor = self._df_matrix() - self._event_shape[-1] - 1
        return gt.where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variance df (V_ij^2 + V_ii V_jj) of each element."""
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._df_matrix() * (covariance**2 + products)

    def _bartlett(self, sample_shape: Sequence[int]) -> Tensor:
        """Draw L A A^T L^T: A has chi variables on its diagonal and normal ones below it."""
        dtype = self._unbroadcasted_scale_tril.dtype
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt().clamp(min=gt.finfo(dtype).eps)
        below = gt.randn(self._extended_shape(sample_shape), dtype=dtype).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + gt.diag_embed(diagonal))
        return factor @ factor.mT

    def rsample(
        self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None
    ) -> Tensor:
        """Draw matrices with gradients.

        Matrices that are numerically singular are redrawn, up to `max_try_correction` times (10 by
        default). Each check for singular matrices fetches one boolean; with 0, none is fetched.
        """
        sample = self._bartlett(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            valid = self.support.check(sample)
            if bool(valid.all()):
                break
            warn("Singular sample detected.")
            sample = gt.where(valid[..., None, None], sample, self._bartlett(sample_shape))
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        df, size, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        solved = gt.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -df * (size * math.log(2) / 2 + half_log_det(factor))
            - gt.mvlgamma(df / 2, size)
            + (df - size - 1) / 2 * gt.linalg.slogdet(value)[1]
            - solved / 2
        )

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        df, size = self.df, self._event_shape[-1]
        digammas = sum(gt.digamma((df - i) / 2) for i in range(size))
        return (
            (size + 1) * (size * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + gt.mvlgamma(df / 2, size)
            - (df - size - 1) / 2 * digammas
            + df * size / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        size = self._event_shape[-1]
        half_df = y + (size + 1) / 2
        log_det = gt.linalg.slogdet(-2 * x)[1]
        return half_df * (size * math.log(2) - log_det) + gt.mvlgamma(half_df, size)
