"""Samples of the gamma distribution, with gradients by implicit differentiation.

Samples are drawn by the rejection method of Marsaglia and Tsang, "A simple method for generating
gamma variables" (2000), which accepts each trial with a probability above 0.95. The number of
trials is fixed, so the program does not wait to learn which were accepted. A sample whose trials
are all rejected (probability below 1e-10) takes the value of the normal draw 0.

With F the distribution function and p the density, a sample x stays at the same quantile as the
concentration a changes: dx/da = -(dF/da) / p(x) (Figurnov, Mohamed and Mnih, "Implicit
reparameterization gradients", https://arxiv.org/abs/1805.08498).
"""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor

_TRIALS = 8
#: Step of the numerical derivative with respect to a, in units of the scale on which F changes.
_STEP = 3e-5
#: For log(x) below this, F is approximated by its leading term, x^a / Gamma(a + 1).
_SMALL = -25.0


def standard_gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draw values of gamma distributions with rate 1, differentiable by the concentration."""
    return _StandardGamma.apply(concentration, generator)


def log_standard_gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draw logarithms of `standard_gamma` values, including values that underflow their dtype."""
    return _LogStandardGamma.apply(concentration, generator)


class _StandardGamma(gt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor, generator: Any) -> Tensor:
        drawn, log_factor = _draw(concentration, generator)
        value = (drawn * log_factor.exp()).to(concentration.dtype)
        value = value.clamp(min=gt.finfo(value.dtype).tiny)
        ctx.save_for_backward(concentration, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        concentration, value = ctx.saved_tensors
        slope = log_slope(concentration, value.to(gt.float64).log())
        return (grad * value * slope.to(grad.dtype)), None


class _LogStandardGamma(gt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor, generator: Any) -> Tensor:
        drawn, log_factor = _draw(concentration, generator)
        value = (drawn.log() + log_factor).to(concentration.dtype)
        ctx.save_for_backward(concentration, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        concentration, value = ctx.saved_tensors
        return grad * log_slope(concentration, value.to(gt.float64)).to(grad.dtype), None


def _draw(concentration: Tensor, generator: Any) -> tuple[Tensor, Tensor]:
    """Draw values as a product: return a number that does not underflow and the log of a factor.

    A concentration below 1 is raised by 1, and the value multiplied by u^(1 / a) with u uniform.
    """
    shape = tuple(concentration.shape)
    dtype = gt.float64 if concentration.dtype == gt.float64 else gt.float32
    a = concentration.to(dtype)
    raised = a < 1
    d = gt.where(raised, a + 1, a) - 1 / 3
    spread = 1 / (3 * d.sqrt())
    cube, accepted = gt.ones_like(d), gt.zeros(shape, dtype=gt.bool)
    for _ in range(_TRIALS):
        normal = gt.randn(shape, dtype=dtype, generator=generator)
        trial = (1 + spread * normal).clamp(min=0) ** 3
        uniform = gt.rand(shape, dtype=dtype, generator=generator)
        bound = 0.5 * normal * normal + d * (1 - trial + trial.log())
        cube = gt.where(accepted, cube, gt.where(uniform.log() < bound, trial, cube))
        accepted = accepted | (uniform.log() < bound)
    uniform = 1 - gt.rand(shape, dtype=dtype, generator=generator)
    return d * cube, gt.where(raised, uniform.log() / a, gt.zeros_like(a))


def log_slope(concentration: Tensor, log_value: Tensor) -> Tensor:
    """Return the derivative of log(x) with respect to a at the same quantile, in float64.

    The derivative of F with respect to a is a central difference, with an error of about 1e-9.
    For x > a it is computed from 1 - F, which keeps its precision there.
    """
    a = concentration.to(gt.float64)
    x = log_value.exp()
    step = _STEP * gt.minimum(a, a.sqrt())
    above = x > a

    def tail(shifted: Tensor) -> Tensor:
        return gt.where(above, -gt.igammac(shifted, x), gt.igamma(shifted, x))

    by_a = (tail(a + step) - tail(a - step)) / (2 * step)
    log_density = a * log_value - x - gt.lgamma(a)  # of log(x)
    leading = (gt.digamma(a + 1) - log_value) / a
    return gt.where(log_value < _SMALL, leading, -by_a / log_density.exp())
