"""The uniform distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Uniform distribution on [low, high).

    >>> from gt.distributions import Uniform
    >>> Uniform(gt.tensor([1.0]), 3.0).mean
    tensor([2.], dtype=float32)
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraints: `low` is below `high`."""
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The interval from `low` to `high`."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        """The mean (low + high) / 2."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """NaN: all values are equally likely."""
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        """The standard deviation (high - low) / sqrt(12)."""
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        """The variance (high - low)^2 / 12."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw low + u (high - low), with u uniform on [0, 1)."""
        drawn = gt.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return -log(high - low) within [low, high), else -inf."""
        self._check_sample(value)
        inside = ((self.low <= value) & (self.high > value)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """Return (value - low) / (high - low), clamped to [0, 1]."""
        self._check_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """Return log(high - low)."""
        return (self.high - self.low).log()
