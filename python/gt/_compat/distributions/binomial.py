"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import softplus

from . import constraints
from ._odds import WithOdds
from .bernoulli import count_up

__all__ = ["Binomial"]


class Binomial(WithOdds):
    """Binomial distribution: the number of successes in `total_count` independent trials.

    Each trial succeeds with probability `probs`, which may be given as log-odds `logits`.

    >>> from gt.distributions import Binomial
    >>> Binomial(4, gt.tensor([0.5])).mean
    tensor([2.], dtype=float32)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._keep(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The integers from 0 to `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """The mean n p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """The mode."""
        return gt.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        """The variance n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw numbers of successes."""
        shape = self._extended_shape(sample_shape)
        with gt.no_grad():
            return gt.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log(n choose k) + k log p + (n - k) log(1 - p), computed from the log-odds."""
        self._check_sample(value)
        n = self.total_count
        choices = gt.lgamma(n + 1) - gt.lgamma(value + 1) - gt.lgamma(n - value + 1)
        return choices + value * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        """Return the entropy in nats, a sum over all values; fetches the range of `total_count`."""
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return 0 to `total_count`, which is fetched and must be the same in the whole batch."""
        least, most = gt.stack([self.total_count.min(), self.total_count.max()]).tolist()
        if least != most:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support` and `entropy`: "
                f"counts are from {least:g} to {most:g}"
            )
        return count_up(1 + int(most), self, expand)
