"""Pairs whose divergence is infinite: p has values outside the support of q."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor

from ..bernoulli import Bernoulli
from ..beta import Beta
from ..binomial import Binomial
from ..continuous_bernoulli import ContinuousBernoulli
from ..exponential import Exponential
from ..gamma import Gamma
from ..gumbel import Gumbel
from ..laplace import Laplace
from ..normal import Normal
from ..pareto import Pareto
from ..poisson import Poisson
from ..uniform import Uniform
from .registry import register_kl

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
