"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Logistic-normal distribution: K normal variables mapped to K + 1 probabilities.

    The map is `StickBreakingTransform`.

    >>> from gt.distributions import LogisticNormal
    >>> LogisticNormal(gt.zeros(2), gt.ones(2)).event_shape
    (3,)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    loc: Tensor = alias("base_dist.base_dist.loc", "The means of the normal variables.")
    scale: Tensor = alias(
        "base_dist.base_dist.scale", "The standard deviations of the normal variables."
    )

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)
