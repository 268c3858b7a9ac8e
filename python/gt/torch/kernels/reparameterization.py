"""Gradients of drawn numbers by the parameters of their distributions, at the same quantile.

With F the distribution function and p the density, the derivative of a draw x by a parameter a is
-(dF/da) / p(x). PyTorch approximates it, with relative errors of up to some percent in parts of the
range; here it is computed to about six digits or better, in float64.
"""

from __future__ import annotations

import math

import gt
from gt.distributions._standard_gamma import log_slope
from gt.torch.kernels import kernel

#: Nodes and weights of double exponential quadrature of functions on (0, infinity) that decay
#: exponentially: Takahasi and Mori, "Double exponential formulas for numerical integration" (1974).
_STEP = 0.1
_AT = [_STEP * number for number in range(-37, 94)]
_NODES = [math.exp(at - math.exp(-at)) for at in _AT]
_WEIGHTS = [node * (1 + math.exp(-at)) * _STEP for node, at in zip(_NODES, _AT, strict=True)]


@kernel("_standard_gamma_grad")
def standard_gamma_grad(self, output):
    """Return the derivative of gamma draws, `output`, by the concentration, `self`."""
    value = output.to(gt.float64)
    return (value * log_slope(self, value.log())).to(output.dtype)


@kernel("_dirichlet_grad")
def dirichlet_grad(x, alpha, total):
    """Return dx/da / (1 - x) for draws x of the beta distribution with a and b = total - a.

    By the logit u of x the density is q(u) = exp(a log s(u) + b log s(-u)) / B(a, b), s being the
    logistic function, and the result is -x times the integral up to u of q(v) / q(u) times
    (log s(v) - E[log x]). The integral over all v is 0, so the tail on the far side of u from the
    mode is integrated, where q falls.
    """
    dtype = x.dtype
    x, a, total = (one.to(gt.float64).unsqueeze(-1) for one in (x, alpha, total))
    x = x.clamp(gt.finfo(gt.float64).tiny, 1 - gt.finfo(gt.float64).eps / 2)
    b, log_x, log_rest = total - a, x.log(), gt.log1p(-x)
    is_lower = x <= a / total
    rate = gt.where(is_lower, a, b)
    scale = 1 / ((a - total * x).abs() + (total * x * (1 - x)).sqrt() + rate.clamp(max=1.0))
    nodes, weights = (gt.tensor(of, dtype=gt.float64) for of in (_NODES, _WEIGHTS))
    logit = log_x - log_rest + gt.where(is_lower, -scale, scale) * nodes
    log_lower, log_upper = gt.nn.functional.logsigmoid(logit), gt.nn.functional.logsigmoid(-logit)
    ratio = gt.exp(a * (log_lower - log_x) + b * (log_upper - log_rest))
    mean = gt.digamma(a) - gt.digamma(total)
    tail = scale.squeeze(-1) * (ratio * (log_lower - mean) * weights).sum(-1)
    return (x.squeeze(-1) * gt.where(is_lower.squeeze(-1), -tail, tail)).to(dtype)
