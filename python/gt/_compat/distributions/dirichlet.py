"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence

import gt
from gt._gt import Tensor

from . import constraints
from ._standard_gamma import log_standard_gamma
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution over probability vectors: density proportional to prod x_i^(a_i - 1).

    `concentration`, of shape (..., K), holds the a_i. A sample is a vector of gamma variables
    divided by their sum, with gradients to `concentration`.

    >>> from gt.distributions import Dirichlet
    >>> Dirichlet(gt.tensor([1.0, 3.0])).mean
    tensor([0.25, 0.75], dtype=float32)
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw vectors with implicit gradients to the concentrations."""
        concentration = self.concentration.expand(self._extended_shape(sample_shape))
        drawn = gt.softmax(log_standard_gamma(concentration), -1)
        limits = gt.finfo(drawn.dtype)  # the density need not be finite at 0 and 1
        return drawn.clamp(limits.tiny, 1 - limits.eps)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        a = self.concentration
        return gt.xlogy(a - 1.0, value).sum(-1) - self._log_normalizer(a)

    @property
    def mean(self) -> Tensor:
        """The concentrations divided by their sum."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """The mode; the first one-hot vector where all concentrations are below 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, keepdim=True)
        corner = (gt.arange(above.shape[-1]) == 0).to(mode.dtype)
        return gt.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        a = self.concentration
        total = a.sum(-1)
        return (
            self._log_normalizer(a)
            + (total - a.shape[-1]) * gt.digamma(total)
            - ((a - 1.0) * gt.digamma(a)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return gt.lgamma(x).sum(-1) - gt.lgamma(x.sum(-1))
