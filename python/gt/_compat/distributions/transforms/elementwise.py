"""Elementwise transforms without parameters, and the transform by a distribution's `cdf`."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import softplus

from .. import constraints
from .._alias import alias
from ..distribution import Distribution
from .transform import Transform


class _Elementwise(Transform):
    """The base of elementwise transforms; instances of the same class are equal."""

    domain = constraints.real

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class _Increasing(_Elementwise):
    bijective = True
    sign = +1


class ExpTransform(_Increasing):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x."""
        return x


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)), clamped to the dtype's range strictly between 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return clipped(gt.sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = clipped(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log(y (1 - y))."""
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log(sigmoid(x))."""
        return -softplus(-x)


class TanhTransform(_Increasing):
    """y = tanh(x). For y near 1 or -1, a cached x is more accurate than atanh(y)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return gt.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log(1 - tanh(x)^2) in a form that does not overflow."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Elementwise):
    """y = |x|; the pseudoinverse of y is y itself."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class CumulativeDistributionTransform(Transform):
    """y = F(x), with F the cumulative distribution function of `distribution`.

    >>> from gt.distributions import Normal, transforms
    >>> transforms.CumulativeDistributionTransform(Normal(0.0, 1.0))(gt.tensor([0.0]))
    tensor([0.5], dtype=float32)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1
    domain: Any = alias("distribution.support", "The distribution's support.")

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the density at x."""
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


def clipped(probability: Tensor) -> Tensor:
    """Clamp probabilities to be above 0 and below 1."""
    limits = gt.finfo(probability.dtype)
    return probability.clamp(limits.tiny, 1.0 - limits.eps)
