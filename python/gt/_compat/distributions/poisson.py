"""The Poisson distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Poisson distribution: P(X = k) = rate^k exp(-rate) / k!.

    >>> from gt.distributions import Poisson
    >>> Poisson(gt.tensor([2.5])).mode
    tensor([2.], dtype=float32)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    mean: Tensor = alias("rate", "The mean, `rate`.")
    variance: Tensor = alias("rate", "The variance, `rate`.")

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        """The mode."""
        return self.rate.floor()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw counts, in the dtype of `rate`."""
        with gt.no_grad():
            return gt.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return k log(rate) - rate - log(k!)."""
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return gt.xlogy(value, rate) - rate - gt.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return x.exp()
