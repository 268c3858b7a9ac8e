"""Divergences between different continuous families: -H(p) - E_p[log q(x)].

Each function handles one family of q, and needs only means under p (`moments`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor

from ..beta import Beta
from ..continuous_bernoulli import ContinuousBernoulli
from ..exponential import Exponential
from ..gamma import Gamma
from ..gumbel import Gumbel
from ..laplace import Laplace
from ..normal import Normal
from ..pareto import Pareto
from ..uniform import Uniform
from .moments import mean_exp, mean_log, mean_log_rest
from .registry import register_kl


def _register(
    types_p: tuple[type[Any], ...], type_q: type[Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers the divergence for a function returning E_p[log q(x)]."""

    def decorator(mean_log_q: Callable[[Any, Any], Tensor]) -> Callable[..., Any]:
        def divergence(p: Any, q: Any) -> Tensor:
            return -p.entropy() - mean_log_q(p, q)

        for type_p in types_p:
            register_kl(type_p, type_q)(divergence)
        return mean_log_q

    return decorator


def _within(p: Any, low: Any, high: Any, log_q: Tensor) -> Tensor:
    """Return `log_q`, or -inf where p has values outside the limits of q."""
    if isinstance(p, Uniform):
        start, end = p.low, p.high
    elif isinstance(p, (Beta, ContinuousBernoulli)):
        start, end = gt.zeros_like(log_q), gt.ones_like(log_q)
    else:  # the support of every other p passed here lies within that of q
        return log_q
    return gt.where((start < low) | (end > high), -math.inf, log_q)


_LINES = (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)


@_register(_LINES, Normal)
def _normal(p: Any, q: Normal) -> Tensor:
    square = (p.variance + (p.mean - q.loc) ** 2) / q.scale**2
    return -0.5 * (math.log(2 * math.pi) + square) - q.scale.log()


@_register((Beta, ContinuousBernoulli, Gamma, Pareto, Uniform), Exponential)
def _exponential(p: Any, q: Exponential) -> Tensor:
    return _within(p, 0, math.inf, q.rate.log() - q.rate * p.mean)


@_register((Beta, Exponential, Pareto, Uniform), Gamma)
def _gamma(p: Any, q: Gamma) -> Tensor:
    a, rate = q.concentration, q.rate
    constant = a * rate.log() - gt.lgamma(a)
    return _within(p, 0, math.inf, constant + (a - 1) * mean_log(p) - rate * p.mean)


@_register((Exponential, Gamma, Normal, Uniform), Gumbel)
def _gumbel(p: Any, q: Gumbel) -> Tensor:
    return (q.loc - p.mean) / q.scale - mean_exp(p, q.loc, q.scale) - q.scale.log()


@_register((Normal,), Laplace)
def _laplace(p: Normal, q: Laplace) -> Tensor:
    """Use E_p|x - loc|, the mean of a folded normal distribution."""
    distance = p.loc - q.loc
    ratio = distance / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio**2).exp()
    far = distance * gt.erf(math.sqrt(0.5) * ratio)
    return -(2 * q.scale).log() - (near + far) / q.scale


@_register((Beta, Uniform), ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    log_q = p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm()
    return _within(p, 0, 1, log_q)


@_register((Beta, ContinuousBernoulli), Uniform)
def _uniform(p: Any, q: Uniform) -> Tensor:
    return _within(p, q.low, q.high, -(q.high - q.low).log())


@_register((Uniform,), Beta)
def _beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    constant = gt.lgamma(a + b) - gt.lgamma(a) - gt.lgamma(b)
    return _within(p, 0, 1, constant + (a - 1) * mean_log(p) + (b - 1) * mean_log_rest(p))


@_register((Uniform,), Pareto)
def _pareto(p: Uniform, q: Pareto) -> Tensor:
    log_q = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * mean_log(p)
    return _within(p, q.scale, math.inf, log_q)
