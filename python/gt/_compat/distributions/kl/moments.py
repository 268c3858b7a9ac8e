"""Means under a distribution, for divergences."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor

from ..beta import Beta
from ..exponential import Exponential
from ..gamma import Gamma
from ..gumbel import Gumbel
from ..normal import Normal
from ..pareto import Pareto
from ..uniform import Uniform
from ..utils import euler_constant


def mean_log(p: Any) -> Tensor:
    """Return the mean of log(x)."""
    if isinstance(p, Beta):
        return gt.digamma(p.concentration1) - gt.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Gamma):
        return gt.digamma(p.concentration) - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    if isinstance(p, Uniform):
        return _mean_log_between(p.low, p.high)
    raise NotImplementedError(f"mean of log(x) under {type(p).__name__}")


def mean_log_rest(p: Uniform) -> Tensor:
    """Return the mean of log(1 - x)."""
    return _mean_log_between(1 - p.high, 1 - p.low)


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    return (gt.xlogy(high, high) - gt.xlogy(low, low)) / (high - low) - 1


def mean_exp(p: Any, shift: Tensor, scale: Tensor) -> Tensor:
    """Return the mean of exp((shift - x) / scale)."""
    if isinstance(p, Normal):
        return ((shift - p.loc) / scale + (p.scale / scale) ** 2 / 2).exp()
    if isinstance(p, Gumbel):
        return ((shift - p.loc) / scale + gt.lgamma(1 + p.scale / scale)).exp()
    if isinstance(p, Exponential):
        return (shift / scale).exp() / (1 + 1 / (p.rate * scale))
    if isinstance(p, Gamma):
        return (shift / scale - p.concentration * (1 / (p.rate * scale)).log1p()).exp()
    if isinstance(p, Uniform):
        ends = ((shift - p.low) / scale).exp() - ((shift - p.high) / scale).exp()
        return ends * scale / (p.high - p.low)
    raise NotImplementedError(f"mean of exp(-x) under {type(p).__name__}")
