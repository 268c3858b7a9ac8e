"""Distributions of |x| for x symmetric about 0."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """The distribution of |x|, where x has a distribution with a scale, symmetric about 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    scale: Tensor = alias("base_dist.scale", "The scale of the symmetric distribution.")

    def __init__(self, base: Any, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        """Zeros."""
        return gt.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log density: log 2 plus that of the symmetric one, or -inf below 0."""
        value = gt.as_tensor(value, dtype=self.scale.dtype)
        self._check_sample(value)
        return gt.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most `value`."""
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        """Return the quantile."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        return self.base_dist.entropy() - math.log(2)
