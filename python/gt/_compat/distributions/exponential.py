"""The exponential distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.ops.random import exponential

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Exponential distribution on [0, inf), with density rate exp(-rate x).

    >>> from gt.distributions import Exponential
    >>> Exponential(gt.tensor([2.0])).mean
    tensor([0.5], dtype=float32)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean 1 / rate."""
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        """Zeros."""
        return gt.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        """The standard deviation 1 / rate."""
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        """The variance 1 / rate^2."""
        return self.rate**-2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values of rate 1, which are never 0, and divide them by the rate."""
        return exponential(self._extended_shape(sample_shape), self.rate.dtype, None) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """Return 1 - exp(-rate x)."""
        self._check_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile -log(1 - value) / rate."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """Return 1 - log(rate)."""
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return -(-x).log()
