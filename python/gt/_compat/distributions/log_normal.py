"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """Log-normal distribution: exp(x) for x ~ Normal(loc, scale).

    >>> from gt.distributions import LogNormal
    >>> LogNormal(gt.tensor([1.0]), 1.0).mode
    tensor([1.], dtype=float32)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    loc: Tensor = alias("base_dist.loc", "The mean of x.")
    scale: Tensor = alias("base_dist.scale", "The standard deviation of x.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean exp(loc + scale^2 / 2)."""
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        """The mode exp(loc - scale^2)."""
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Tensor:
        """The variance (exp(scale^2) - 1) exp(2 loc + scale^2)."""
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        """Return the entropy of x plus loc."""
        return self.base_dist.entropy() + self.loc
