"""The Cauchy distribution."""

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

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Cauchy distribution, with density 1 / (pi scale (1 + ((x - loc) / scale)^2)).

    `loc` is the median, `scale` the half width at half maximum.

    >>> from gt.distributions import Cauchy
    >>> Cauchy(gt.tensor([0.0]), 1.0).cdf(gt.tensor([1.0]))
    tensor([0.75], dtype=float32)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    mode: Tensor = alias("loc", "The median.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """NaN: the mean is undefined."""
        return gt.full(self._extended_shape(), math.nan, dtype=self.loc.dtype)

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return gt.full(self._extended_shape(), math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values by inverse transform sampling, with gradients."""
        return self.icdf(gt.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        distance = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (distance**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """Return arctan((x - loc) / scale) / pi + 1/2."""
        self._check_sample(value)
        return gt.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile."""
        return gt.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        """Return log(4 pi scale)."""
        return math.log(4 * math.pi) + self.scale.log()
