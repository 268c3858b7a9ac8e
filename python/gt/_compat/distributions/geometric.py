"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._odds import WithOdds
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(WithOdds):
    """Geometric distribution: the number of failures before the first success.

    Each trial succeeds with probability `probs`, which may be given as log-odds `logits` and must
    be above 0.

    >>> from gt.distributions import Geometric
    >>> Geometric(gt.tensor([0.25])).mean
    tensor([3.], dtype=float32)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._keep(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        """The mean 1 / p - 1."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        """Zeros."""
        return gt.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        """The variance (1 / p - 1) / p."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw floor(log(u) / log(1 - p)), with u uniform."""
        shape = self._extended_shape(sample_shape)
        with gt.no_grad():
            uniform = 1 - gt.rand(shape, dtype=self.probs.dtype)
            return (uniform.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return value log(1 - p) + log p."""
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failing = gt.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        binary = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return binary / self.probs
