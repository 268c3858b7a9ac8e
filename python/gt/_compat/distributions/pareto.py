"""The Pareto distribution."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Pareto distribution on [scale, inf): P(X > x) = (scale / x)^alpha.

    >>> from gt.distributions import Pareto
    >>> Pareto(gt.tensor([1.0]), 2.0).mean
    tensor([2.], dtype=float32)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    mode: Tensor = alias("scale", "The mode, `scale`: the start of the support.")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The interval [scale, inf)."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """The mean, infinite for alpha <= 1."""
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def variance(self) -> Tensor:
        """The variance, infinite for alpha <= 2."""
        alpha = self.alpha.clamp(min=2)
        return self.scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))

    def entropy(self) -> Tensor:
        """Return log(scale / alpha) + 1 + 1 / alpha."""
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)
