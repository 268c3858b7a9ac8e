"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor

from ._alias import alias
from ._half import Half
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """Half-Cauchy distribution: |x| for x Cauchy with median 0.

    >>> from gt.distributions import HalfCauchy
    >>> HalfCauchy(gt.tensor([2.0])).cdf(gt.tensor([2.0]))
    tensor([0.5], dtype=float32)
    """

    has_rsample = True
    variance: Tensor = alias("base_dist.variance", "Infinity.")

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        """Infinity."""
        return gt.full(self._extended_shape(), math.inf, dtype=self.scale.dtype)
