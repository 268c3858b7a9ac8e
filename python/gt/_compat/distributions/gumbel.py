"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """Gumbel distribution: P(X <= x) = exp(-exp(-(x - loc) / scale)).

    >>> from gt.distributions import Gumbel
    >>> Gumbel(gt.tensor([1.0]), 2.0).mode
    tensor([1.], dtype=float32)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    mode: Tensor = alias("loc", "The mode, `loc`.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = gt.finfo(self.loc.dtype)
        low = gt.full_like(self.loc, limits.tiny)
        base = Uniform(low, gt.full_like(low, 1 - limits.eps), validate_args=False)
        log = ExpTransform().inv
        negative = AffineTransform(0, -gt.ones_like(self.scale))
        scaled = AffineTransform(self.loc, -self.scale)
        super().__init__(base, [log, negative, log, scaled], validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        """The mean: loc + scale times the Euler-Mascheroni constant."""
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self) -> Tensor:
        """The standard deviation pi scale / sqrt(6)."""
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        """The square of the standard deviation."""
        return self.stddev**2

    def entropy(self) -> Tensor:
        """Return log(scale) + 1 + the Euler-Mascheroni constant."""
        return self.scale.log() + (1 + euler_constant)
