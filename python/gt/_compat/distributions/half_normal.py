"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from gt._gt import Tensor

from ._half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """Half-normal distribution: |x| for x normal with mean 0.

    >>> from gt.distributions import HalfNormal
    >>> HalfNormal(gt.tensor([2.0])).mode
    tensor([0.], dtype=float32)
    """

    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean scale sqrt(2 / pi)."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        """The variance scale^2 (1 - 2 / pi)."""
        return self.scale**2 * (1 - 2 / math.pi)
