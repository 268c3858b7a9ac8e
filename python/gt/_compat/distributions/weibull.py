"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull distribution on [0, inf): P(X > x) = exp(-(x / scale)^concentration).

    >>> from gt.distributions import Weibull
    >>> Weibull(gt.tensor([2.0]), 1.0).mean
    tensor([2.], dtype=float32)
    """

    arg_constraints = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(gt.ones_like(self.scale), validate_args=False)
        transforms = [
            PowerTransform(self.concentration_reciprocal),
            AffineTransform(0, self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def concentration_reciprocal(self) -> Tensor:
        """The reciprocal 1 / concentration."""
        return 1 / self.concentration

    def _moment(self, order: int) -> Tensor:
        """Return the mean of (x / scale)^order."""
        return gt.lgamma(1 + order / self.concentration).exp()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        """The mode."""
        power = self.concentration_reciprocal
        return self.scale * ((self.concentration - 1) / self.concentration) ** power

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale**2 * (self._moment(2) - self._moment(1) ** 2)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        power = self.concentration_reciprocal
        return euler_constant * (1 - power) + (self.scale * power).log() + 1
