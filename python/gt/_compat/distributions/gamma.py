"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._standard_gamma import standard_gamma
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Gamma distribution, with density proportional to x^(concentration - 1) exp(-rate x).

    >>> from gt.distributions import Gamma
    >>> Gamma(gt.tensor([3.0]), 2.0).mean
    tensor([1.5], dtype=float32)
    """

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean concentration / rate."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """The mode; 0 for concentrations below 1."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """The variance concentration / rate^2."""
        return self.concentration / self.rate**2

    def sample(self, sample_shape: Sequence[int] = (), *, generator: Any = None) -> Tensor:
        """Draw values without gradients."""
        with gt.no_grad():
            return self.rsample(sample_shape, generator=generator)

    def rsample(self, sample_shape: Sequence[int] = (), generator: Any = None) -> Tensor:
        """Draw values with implicit gradients to the concentration."""
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(shape), generator) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        value = gt.as_tensor(value, dtype=self.rate.dtype)
        self._check_sample(value)
        a, rate = self.concentration, self.rate
        return gt.xlogy(a, rate) + gt.xlogy(a - 1, value) - rate * value - gt.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        """Return the regularized lower incomplete gamma function P(concentration, rate x)."""
        self._check_sample(value)
        return gt.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        a = self.concentration
        return a - self.rate.log() + gt.lgamma(a) + (1 - a) * gt.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return gt.lgamma(x + 1) - (x + 1) * (-y).log()
