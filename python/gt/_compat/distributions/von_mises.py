"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

#: Trials per sample. Each is accepted with a probability of at least 0.65, so the probability that
#: all are rejected, and the sample is `loc`, is below 1e-10.
_TRIALS = 24


class VonMises(Distribution):
    """Von Mises distribution of angles in radians: density ~ exp(concentration cos(x - loc)).

    Samples are drawn by the rejection method of Best and Fisher, "Efficient simulation of the von
    Mises distribution" (1979). The number of trials is fixed, so the program does not wait to
    learn which were accepted.

    >>> from gt.distributions import VonMises
    >>> VonMises(gt.tensor([1.0]), 4.0).mode
    tensor([1.], dtype=float32)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    mean: Tensor = alias("loc", "The circular mean, `loc`.")
    mode: Tensor = alias("loc", "The mode, `loc`.")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return concentration cos(x - loc) - log(2 pi I0(concentration))."""
        self._check_sample(value)
        scaled = gt.special.i0e(self.concentration).log()
        cosine = gt.cos(value - self.loc) - 1
        return self.concentration * cosine - math.log(2 * math.pi) - scaled

    @lazy_property
    def variance(self) -> Any:
        """The circular variance 1 - I1(concentration) / I0(concentration)."""
        return 1 - gt.special.i1e(self.concentration) / gt.special.i0e(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw angles in [-pi, pi), computed in float64."""
        shape = self._extended_shape(sample_shape)
        with gt.no_grad():
            kappa = self.concentration.to(gt.float64)
            angle = _standard(kappa, shape) + self.loc.to(gt.float64)
            return ((angle + math.pi) % (2 * math.pi) - math.pi).to(self.loc.dtype)


def _standard(kappa: Tensor, shape: Sequence[int]) -> Tensor:
    """Draw angles around 0, with proposals from a wrapped Cauchy distribution."""
    tau = 1 + (1 + 4 * kappa**2).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
    envelope = gt.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
    angle = gt.zeros(shape, dtype=gt.float64)
    accepted = gt.zeros(shape, dtype=gt.bool)
    for _ in range(_TRIALS):
        first, second, third = gt.rand((3, *shape), dtype=gt.float64).unbind()
        cosine = gt.cos(math.pi * first)
        trial = (1 + envelope * cosine) / (envelope + cosine)
        excess = kappa * (envelope - trial)
        fits = (excess * (2 - excess) > second) | (excess.log() - second.log() + 1 >= excess)
        signed = (third - 0.5).sign() * trial.clamp(-1, 1).acos()
        angle = gt.where(fits & ~accepted, signed, angle)
        accepted = accepted | fits
    return angle
