"""The beta distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Beta distribution on [0, 1], with density proportional to x^(a - 1) (1 - x)^(b - 1).

    a is `concentration1` and b `concentration0`.

    >>> from gt.distributions import Beta
    >>> Beta(gt.tensor([1.0]), 3.0).mean
    tensor([0.25], dtype=float32)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _dirichlet: Dirichlet

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = gt.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The parameter a: the exponent of x plus 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The parameter b: the exponent of 1 - x plus 1."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        """The mean a / (a + b)."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """The mode."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        """The variance a b / ((a + b)^2 (a + b + 1))."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values with implicit gradients to the concentrations."""
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        return self._dirichlet.log_prob(gt.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return gt.lgamma(x) + gt.lgamma(y) - gt.lgamma(x + y)
