"""Categorical distributions over one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

import gt
from gt._gt import Tensor
from gt.nn.functional import one_hot

from . import constraints
from ._alias import alias
from ._over_categorical import OverCategorical

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OverCategorical):
    """Categorical distribution over one-hot vectors of length K.

    `probs` (..., K) are weights, `logits` their logarithms.

    >>> from gt.distributions import OneHotCategorical
    >>> OneHotCategorical(gt.tensor([1.0, 3.0])).mode
    tensor([0., 1.], dtype=float32)
    """

    support = constraints.one_hot
    has_enumerate_support = True
    mean: Tensor = alias("probs", "The probabilities.")

    @property
    def mode(self) -> Tensor:
        """The one-hot vector of the largest weight."""
        return one_hot(self.probs.argmax(-1), self.probs.shape[-1]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        """The variances p (1 - p)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw one-hot vectors."""
        drawn = self._categorical.sample(sample_shape)
        return one_hot(drawn, self.probs.shape[-1]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithms of the values' probabilities."""
        self._check_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return the K one-hot vectors along axis 0."""
        n = self._event_shape[0]
        values = gt.eye(n, dtype=self._param.dtype)
        values = values.reshape((n, *[1] * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot categorical distribution whose `rsample` has the straight-through gradient.

    The gradient of a sample is passed unchanged to the probabilities (Bengio, Leonard and
    Courville, https://arxiv.org/abs/1308.3432).
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw one-hot vectors; their gradient is passed unchanged to the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
