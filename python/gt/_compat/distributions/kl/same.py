"""Divergences within a family, and between discrete families."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import softplus

from ..bernoulli import Bernoulli
from ..beta import Beta
from ..binomial import Binomial
from ..categorical import Categorical
from ..cauchy import Cauchy
from ..continuous_bernoulli import ContinuousBernoulli
from ..dirichlet import Dirichlet
from ..exponential import Exponential
from ..gamma import Gamma
from ..geometric import Geometric
from ..gumbel import Gumbel
from ..half_normal import HalfNormal
from ..laplace import Laplace
from ..normal import Normal
from ..one_hot_categorical import OneHotCategorical
from ..pareto import Pareto
from ..poisson import Poisson
from ..uniform import Uniform
from ..utils import euler_constant
from .moments import mean_exp
from .registry import register_kl


def _weighted(weight: Tensor, log_ratio: Tensor, other: Tensor) -> Tensor:
    """Return weight log(weight / other): 0 for weight 0, else infinite for other 0."""
    term = gt.where(other == 0, math.inf, weight * log_ratio)
    return gt.where(weight == 0, 0.0, term)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = _weighted(p.probs, softplus(-q.logits) - softplus(-p.logits), q.probs)
    zeros = _weighted(1 - p.probs, softplus(q.logits) - softplus(p.logits), 1 - q.probs)
    return ones + zeros


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    """Fetch one boolean, to raise where q has more trials than p, which has no closed form."""
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    of_trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return gt.where(p.total_count > q.total_count, math.inf, p.total_count * of_trial)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    return _weighted(p.probs, p.logits - q.logits, q.probs).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """See Chyzak and Nielsen, https://arxiv.org/abs/1905.10965."""
    apart = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    norms = p._cont_bern_log_norm() - q._cont_bern_log_norm()
    return p.mean * (p.logits - q.logits) + norms + (-p.probs).log1p() - (-q.probs).log1p()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    mean_log = gt.digamma(a) - gt.digamma(a.sum(-1, keepdim=True))
    norms = q._log_normalizer(b) - p._log_normalizer(a)
    return norms + ((a - b) * mean_log).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + gt.lgamma(b)
        - gt.lgamma(a)
        + (a - b) * gt.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    mean_log_q = (q.loc - p.mean) / q.scale - mean_exp(p, q.loc, q.scale) - q.scale.log()
    return -p.scale.log() - (1 + euler_constant) - mean_log_q


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - 1 - ratio.log()


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    distance = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() + ratio - 1 - ratio.log()
    return gt.where(p.scale < q.scale, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return gt.where((q.low > p.low) | (q.high < p.high), math.inf, result)
