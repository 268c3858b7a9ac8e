"""The multinomial distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._over_categorical import OverCategorical
from .binomial import Binomial
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OverCategorical):
    """Multinomial distribution: how often each of K outcomes occurs in `total_count` trials.

    `probs` (..., K) are weights of the outcomes, `logits` their logarithms.

    >>> from gt.distributions import Multinomial
    >>> Multinomial(4, gt.tensor([1.0, 3.0])).mean
    tensor([1., 3.], dtype=float32)
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            kind = type(total_count).__name__
            raise NotImplementedError(
                f"inhomogeneous total_count is not supported: expected an int, not {kind}"
            )
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Vectors of counts with a sum of at most `total_count`."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        """The means n p."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """The variances n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw outcomes and count them."""
        outcomes = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = gt.zeros(self._extended_shape(sample_shape), dtype=self.probs.dtype)
        return counts.scatter_add(-1, outcomes, gt.ones(outcomes.shape, dtype=counts.dtype))

    def entropy(self) -> Tensor:
        """Return the entropy: n times that of one outcome, minus that of the outcomes' order."""
        n = self.total_count
        counts = Binomial(n, probs=self.probs, validate_args=False)
        values = gt.arange(1, n + 1, dtype=self.probs.dtype)
        values = values.reshape((-1, *[1] * self.probs.dim()))
        expected = (counts.log_prob(values).exp() * gt.lgamma(values + 1)).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + expected

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log(n! / prod(x_i!)) + sum(x_i log p_i); n is the sum of the counts."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = gt.where((value == 0) & (logits == -math.inf), 0.0, logits)
        orders = gt.lgamma(value.sum(-1) + 1) - gt.lgamma(value + 1).sum(-1)
        return orders + (logits * value).sum(-1)
