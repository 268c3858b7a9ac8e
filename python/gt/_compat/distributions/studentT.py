"""Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution: loc + scale x / sqrt(y / df), with x ~ Normal(0, 1), y ~ Chi2(df).

    >>> from gt.distributions import StudentT
    >>> StudentT(gt.tensor([4.0])).variance
    tensor([2.], dtype=float32)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    mode: Tensor = alias("loc", "The mode, `loc`.")

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=validate_args)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean, `loc`; NaN for df <= 1."""
        return gt.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        """The variance; infinite for 1 < df <= 2, NaN for df <= 1."""
        finite = self.scale**2 * self.df / (self.df - 2)
        infinite = gt.full_like(self.df, math.inf)
        return gt.where(self.df > 2, finite, gt.where(self.df > 1, infinite, math.nan))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values with implicit gradients to `df`."""
        normal = gt.randn(self._extended_shape(sample_shape), dtype=self.df.dtype)
        spread = (self._chi2.rsample(sample_shape) / self.df).rsqrt()
        return self.loc + self.scale * normal * spread

    def _log_norm(self) -> Tensor:
        """Return log(sqrt(df) B(1/2, df/2)), with the beta function B."""
        half = 0.5 * self.df
        beta = gt.lgamma(half) + math.lgamma(0.5) - gt.lgamma(half + 0.5)
        return 0.5 * self.df.log() + beta

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        distance = (value - self.loc) / self.scale
        power = -0.5 * (self.df + 1.0) * (distance**2 / self.df).log1p()
        return power - self.scale.log() - self._log_norm()

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        half = 0.5 * (self.df + 1)
        slope = gt.digamma(half) - gt.digamma(half - 0.5)
        return self.scale.log() + half * slope + self._log_norm()
