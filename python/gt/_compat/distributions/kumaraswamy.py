"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distribution on [0, 1]: P(X <= x) = 1 - (1 - x^a)^b.

    a is `concentration1` and b `concentration0`.

    >>> from gt.distributions import Kumaraswamy
    >>> Kumaraswamy(gt.tensor([1.0]), 2.0).cdf(gt.tensor([0.5]))
    tensor([0.75], dtype=float32)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        low = gt.zeros_like(self.concentration0)
        base = Uniform(low, gt.ones_like(low), validate_args=False)
        transforms = [
            PowerTransform(1 / self.concentration0),
            AffineTransform(1.0, -1.0),
            PowerTransform(1 / self.concentration1),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        """Return the mean of x^order: b B(1 + order / a, b), with the beta function B."""
        a, b = self.concentration1, self.concentration0
        first = 1 + order / a
        return b * (gt.lgamma(first) + gt.lgamma(b) - gt.lgamma(first + b)).exp()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """The mode ((a - 1) / (a b - 1))^(1 / a), NaN where a or b is below 1."""
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** (1 / a)
        return gt.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self._moment(2) - self.mean**2

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        a, b = self.concentration1, self.concentration0
        harmonic = gt.digamma(b + 1) + euler_constant
        return 1 - 1 / b + (1 - 1 / a) * harmonic - a.log() - b.log()
