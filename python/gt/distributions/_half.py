"""The absolute values of a distribution that is symmetric about 0."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.distributions import constraints
from gt.distributions.transformed_distribution import TransformedDistribution
from gt.distributions.transforms import AbsTransform


class Half(TransformedDistribution):
    """|x| of numbers x of a distribution that is symmetric about 0 and has a scale."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, base: Any, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        """Zeros."""
        return gt.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """Give the logarithm of the density: twice the symmetric one's from 0 on."""
        value = gt.as_tensor(value, dtype=self.scale.dtype)
        if self._validate_args:
            self._validate_sample(value)
        return gt.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Give the probability of being at most a value."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        """Give the quantile."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        """Give the entropy in nats."""
        return self.base_dist.entropy() - math.log(2)
