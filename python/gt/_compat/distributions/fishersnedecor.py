"""Fisher and Snedecor's F distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """F distribution: the ratio of two chi-squared variables, each over its degrees of freedom.

    >>> from gt.distributions import FisherSnedecor
    >>> FisherSnedecor(gt.tensor([1.0]), 4.0).mean
    tensor([2.], dtype=float32)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1, validate_args=validate_args)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2, validate_args=validate_args)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean df2 / (df2 - 2), NaN for df2 <= 2."""
        df2 = gt.where(self.df2 > 2, self.df2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """The mode, NaN for df1 <= 2."""
        ratio = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return gt.where(self.df1 > 2, ratio, math.nan)

    @property
    def variance(self) -> Tensor:
        """The variance, NaN for df2 <= 4."""
        df1, df2 = self.df1, gt.where(self.df2 > 4, self.df2, math.nan)
        return 2 * df2**2 * (df1 + df2 - 2) / (df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values with implicit gradients to the degrees of freedom."""
        tiny = gt.finfo(self.df1.dtype).tiny
        below = self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return (self._gamma1.rsample(sample_shape) / below).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        beta = gt.lgamma(half1) + gt.lgamma(half2) - gt.lgamma(half1 + half2)
        powers = half1 * ratio.log() + (half1 - 1) * value.log()
        return powers - (half1 + half2) * (ratio * value).log1p() - beta
