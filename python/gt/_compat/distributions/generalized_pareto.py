"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalized Pareto distribution: P(X > x) = (1 + c z)^(-1 / c), with z = (x - loc) / scale.

    c is `concentration`. For c = 0 the probability is exp(-z). The support starts at loc and, for
    c < 0, ends at loc - scale / c.

    >>> from gt.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, gt.tensor([0.5])).mean
    tensor([2.], dtype=float32)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    mode: Tensor = alias("loc", "The mode, `loc`: the start of the support.")

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The interval from `loc` to loc - scale / c for c < 0, else to infinity."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, gt.where(self.concentration < 0, end, math.inf))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values by inverse transform sampling, with gradients."""
        return self.icdf(gt.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def _is_zero(self) -> Tensor:
        return self.concentration.abs() <= 1e-8

    def _safe_concentration(self) -> Tensor:
        return gt.where(self._is_zero(), 1.0, self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        z, c = (value - self.loc) / self.scale, self._safe_concentration()
        power = 1 / c + 1
        # For c = -1 the density is uniform, also at the end of the support, where log1p is -inf.
        exact = gt.where(power == 0, 0.0, power * (c * z).log1p())
        return -self.scale.log() - gt.where(self._is_zero(), z, exact)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of exceeding `value`."""
        self._check_sample(value)
        z, c = (value - self.loc) / self.scale, self._safe_concentration()
        return gt.where(self._is_zero(), -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of at most `value`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most `value`."""
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile."""
        c, log_left = self._safe_concentration(), (-value).log1p()
        exact = self.loc + self.scale / c * (-c * log_left).expm1()
        return gt.where(self._is_zero(), self.loc - self.scale * log_left, exact)

    @property
    def mean(self) -> Tensor:
        """The mean loc + scale / (1 - c), NaN for c >= 1."""
        c = gt.where(self.concentration < 1, self.concentration, math.nan)
        return self.loc + self.scale / (1 - c)

    @property
    def variance(self) -> Tensor:
        """The variance scale^2 / ((1 - c)^2 (1 - 2 c)), NaN for c >= 1/2."""
        c = gt.where(self.concentration < 0.5, self.concentration, math.nan)
        return self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))

    def entropy(self) -> Tensor:
        """Return log(scale) + c + 1."""
        return self.scale.log() + self.concentration + 1
