"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import softplus

from . import constraints
from ._alias import alias
from ._odds import WithOdds
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(WithOdds):
    """The log-odds of a relaxed Bernoulli variable.

    (log u - log(1 - u) + logits) / temperature, with u uniform (Maddison, Mnih and Teh,
    https://arxiv.org/abs/1611.00712).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._keep(probs, logits)
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw log-odds with gradients."""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(gt.rand(shape, dtype=probs.dtype))
        odds = uniform.log() - (-uniform).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value * self.temperature
        return self.temperature.log() + distance - 2 * softplus(distance)


class RelaxedBernoulli(TransformedDistribution):
    """Relaxed Bernoulli distribution on [0, 1], with gradients to `probs`.

    For small temperatures, samples are near 0 or 1.

    >>> from gt.distributions import RelaxedBernoulli
    >>> RelaxedBernoulli(gt.tensor(0.5), gt.tensor([0.2, 0.7])).rsample().shape
    (2,)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    temperature: Tensor = alias("base_dist.temperature", "The temperature.")
    logits: Tensor = alias("base_dist.logits", "The log-odds.")
    probs: Tensor = alias("base_dist.probs", "The probability.")

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
