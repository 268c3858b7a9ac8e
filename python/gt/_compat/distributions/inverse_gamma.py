"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Inverse gamma distribution: 1 / x for x ~ Gamma(concentration, rate).

    >>> from gt.distributions import InverseGamma
    >>> InverseGamma(gt.tensor([3.0]), 1.0).mean
    tensor([0.5], dtype=float32)
    """

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    concentration: Tensor = alias("base_dist.concentration", "The concentration of x.")
    rate: Tensor = alias("base_dist.rate", "The rate of x.")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean rate / (concentration - 1), infinite for concentration <= 1."""
        mean = self.rate / (self.concentration - 1)
        return gt.where(self.concentration > 1, mean, math.inf)

    @property
    def mode(self) -> Tensor:
        """The mode rate / (concentration + 1)."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """The variance, infinite for concentration <= 2."""
        a = self.concentration
        variance = self.rate**2 / ((a - 1) ** 2 * (a - 2))
        return gt.where(a > 2, variance, math.inf)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        a = self.concentration
        return a + self.rate.log() + gt.lgamma(a) - (1 + a) * gt.digamma(a)
