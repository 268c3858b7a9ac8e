"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import logsigmoid

from . import constraints
from ._odds import WithOdds
from ._standard_gamma import standard_gamma

__all__ = ["NegativeBinomial"]


class NegativeBinomial(WithOdds):
    """Negative binomial distribution: the number of successes before `total_count` failures.

    Each trial succeeds with probability `probs`, which may be given as log-odds `logits`.
    `total_count` may be any nonnegative number.

    >>> from gt.distributions import NegativeBinomial
    >>> NegativeBinomial(3, gt.tensor([0.5])).mean
    tensor([3.], dtype=float32)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._keep(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean n p / (1 - p)."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """The mode."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        """The variance n p / (1 - p)^2."""
        return self.mean / gt.sigmoid(-self.logits)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw Poisson values whose rates are drawn from a gamma distribution."""
        shape = self._extended_shape(sample_shape)
        with gt.no_grad():
            gamma = standard_gamma(self.total_count.expand(shape))
            return gt.poisson(gamma * self.logits.exp())

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log(Gamma(n + k) / (k! Gamma(n))) + n log(1 - p) + k log p, from the log-odds."""
        self._check_sample(value)
        n = self.total_count
        powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        choices = gt.lgamma(n + value) - gt.lgamma(1.0 + value) - gt.lgamma(n)
        return powers + gt.where(n + value == 0, 0.0, choices)
