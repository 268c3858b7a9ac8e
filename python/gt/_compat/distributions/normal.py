"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """Normal (Gaussian) distribution with mean `loc` and standard deviation `scale`.

    >>> from gt.distributions import Normal
    >>> Normal(gt.tensor([1.0]), 2.0).cdf(gt.tensor([1.0]))
    tensor([0.5], dtype=float32)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    mean: Tensor = alias("loc", "The mean.")
    mode: Tensor = alias("loc", "The mode, which is the mean.")
    stddev: Tensor = alias("scale", "The standard deviation.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw loc + scale x, with x standard normal."""
        drawn = gt.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        distance = (value - self.loc) / self.scale
        return -(distance**2) / 2 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most `value`."""
        self._check_sample(value)
        return 0.5 * (1 + gt.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile."""
        return self.loc + self.scale * gt.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        """Return log(2 pi e) / 2 + log(scale)."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.loc / self.scale**2, -0.5 / self.scale**2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * x**2 / y + 0.5 * (-math.pi / y).log()
