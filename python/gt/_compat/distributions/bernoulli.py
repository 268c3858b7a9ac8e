"""The Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import binary_cross_entropy_with_logits, softplus

from . import constraints
from ._alias import alias
from ._odds import WithOdds
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(WithOdds, ExponentialFamily):
    """Bernoulli distribution: 1 with probability `probs` or log-odds `logits`, else 0.

    >>> from gt.distributions import Bernoulli
    >>> Bernoulli(gt.tensor([0.25])).variance
    tensor([0.1875], dtype=float32)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    mean: Tensor = alias("probs", "The probability.")

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._keep(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        """The more likely value; NaN where both are equally likely."""
        likely = (self.probs >= 0.5).to(self.probs.dtype)
        return gt.where(self.probs == 0.5, float("nan"), likely)

    @property
    def variance(self) -> Tensor:
        """The variance p (1 - p)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw zeros and ones."""
        with gt.no_grad():
            return gt.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log p where `value` is 1, and log(1 - p) where it is 0."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value.to(logits.dtype), reduction="none")

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return 0 and 1 along axis 0."""
        return count_up(2, self, expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (gt.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return softplus(x)


def count_up(count: int, of: WithOdds, expand: bool) -> Tensor:
    """Return 0, 1, ..., count - 1 along a new axis before the batch axes."""
    values = gt.arange(count, dtype=of._param.dtype)
    values = values.reshape((-1, *[1] * len(of.batch_shape)))
    return values.expand((-1, *of.batch_shape)) if expand else values
