"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._odds import WithOdds
from .exp_family import ExponentialFamily
from .utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(WithOdds, ExponentialFamily):
    """Continuous Bernoulli distribution on [0, 1], density proportional to p^x (1 - p)^(1 - x).

    p is `probs`, or given by its log-odds `logits` (Loaiza-Ganem and Cunningham,
    https://arxiv.org/abs/1907.06845). Near p = 1/2, between the two `lims`, Taylor polynomials
    replace formulas that would divide 0 by 0.

    >>> from gt.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(gt.tensor([0.5])).mean
    tensor([0.5], dtype=float32)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._keep(probs, logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The parameter p, clamped away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self) -> Tensor:
        """Return where p is outside `lims`, so that the exact formulas are used."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _safe_probs(self) -> Tensor:
        return gt.where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Return the logarithm of the normalizer 2 artanh(1 - 2 p) / (1 - 2 p)."""
        p = self._safe_probs()
        odds = (p.log() - (-p).log1p()).abs()
        exact = odds.log() - (1.0 - 2.0 * p).abs().log()
        x = (self.probs - 0.5) ** 2
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return gt.where(self._outside(), exact, taylor)

    @property
    def mean(self) -> Tensor:
        """The mean p / (2 p - 1) + 1 / log((1 - p) / p)."""
        p = self._safe_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x
        return gt.where(self._outside(), exact, taylor)

    @property
    def variance(self) -> Tensor:
        """The variance (p - 1) p / (1 - 2 p)^2 + 1 / log((1 - p) / p)^2."""
        p = self._safe_probs()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return gt.where(self._outside(), exact, taylor)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values by inverse transform sampling, with gradients."""
        return self.icdf(gt.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        powers = -binary_cross_entropy_with_logits(logits, value, reduction="none")
        return powers + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        """Return (p^x (1 - p)^(1 - x) + p - 1) / (2 p - 1)."""
        self._check_sample(value)
        p = self._safe_probs()
        exact = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        taylor = value - 2.0 * (self.probs - 0.5) * value * (1.0 - value)
        return gt.where(self._outside(), exact, taylor).clamp(0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile."""
        p = self._safe_probs()
        below = (-p).log1p()
        exact = ((-p + value * (2.0 * p - 1.0)).log1p() - below) / (p.log() - below)
        taylor = value + 2.0 * (self.probs - 0.5) * value * (1.0 - value)
        return gt.where(self._outside(), exact, taylor)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """Return log((exp(x) - 1) / x), by a Taylor polynomial near 0."""
        (x,) = natural_params
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = gt.where(outside, x, self._lims[0] - 0.5)
        exact = safe.expm1().abs().log() - safe.abs().log()
        taylor = 0.5 * x + x**2 / 24.0 - x**4 / 2880.0
        return gt.where(outside, exact, taylor)
