"""The relaxed one-hot categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from ._over_categorical import OverCategorical
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategorical):
    """The logarithm of a relaxed one-hot vector.

    log softmax((logits + Gumbel noise) / temperature) (Maddison, Mnih and Teh,
    https://arxiv.org/abs/1611.00712; Jang, Gu and Poole, https://arxiv.org/abs/1611.01144).
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw vectors with gradients."""
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(gt.rand(shape, dtype=self.logits.dtype))
        noise = -(-uniform.log()).log()
        return gt.log_softmax((self.logits + noise) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        count = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scores = gt.log_softmax(logits - value * self.temperature, -1).sum(-1)
        return scores + math.lgamma(count) + (count - 1) * self.temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """Relaxed one-hot categorical distribution over K probabilities, with gradients to `probs`.

    For small temperatures, samples are near one-hot vectors.

    >>> from gt.distributions import RelaxedOneHotCategorical
    >>> RelaxedOneHotCategorical(gt.tensor(0.5), gt.tensor([0.2, 0.8])).rsample().shape
    (2,)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    temperature: Tensor = alias("base_dist.temperature", "The temperature.")
    logits: Tensor = alias("base_dist.logits", "The logarithms of the probabilities.")
    probs: Tensor = alias("base_dist.probs", "The probabilities.")

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
