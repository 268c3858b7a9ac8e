"""Pairs whose divergence is infinite: p has values outside the support of q."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.distributions.bernoulli import Bernoulli
from gt.distributions.beta import Beta
from gt.distributions.binomial import Binomial
from gt.distributions.continuous_bernoulli import ContinuousBernoulli
from gt.distributions.exponential import Exponential
from gt.distributions.gamma import Gamma
from gt.distributions.gumbel import Gumbel
from gt.distributions.kl.registry import register_kl
from gt.distributions.laplace import Laplace
from gt.distributions.normal import Normal
from gt.distributions.pareto import Pareto
from gt.distributions.poisson import Poisson
from gt.distributions.uniform import Uniform

_BOUNDED = (Beta, ContinuousBernoulli, Uniform)
_HALF_LINES = (*_BOUNDED, Exponential, Gamma, Pareto)

_PAIRS: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (*_BOUNDED, Pareto),
    Gamma: (*_BOUNDED, Pareto),
    Gumbel: _HALF_LINES,
    Laplace: _HALF_LINES,
    Normal: _HALF_LINES,
    Pareto: _BOUNDED,
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p: Any, q: Any) -> Tensor:
    return gt.full_like(p.mean, math.inf)


for _type_p, _types_q in _PAIRS.items():
    for _type_q in _types_q:
        register_kl(_type_p, _type_q)(_infinite)
