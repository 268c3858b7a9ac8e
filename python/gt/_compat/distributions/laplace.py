"""The Laplace distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Laplace distribution, with density exp(-|x - loc| / scale) / (2 scale).

    >>> from gt.distributions import Laplace
    >>> Laplace(gt.tensor([0.0]), 3.0).variance
    tensor([18.], dtype=float32)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    mean: Tensor = alias("loc", "The mean, `loc`.")
    mode: Tensor = alias("loc", "The mode, `loc`.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        """The variance 2 scale^2."""
        return 2 * self.scale**2

    @property
    def stddev(self) -> Tensor:
        """The standard deviation sqrt(2) scale."""
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values by inverse transform sampling, with gradients."""
        dtype = self.loc.dtype
        uniform = gt.rand(self._extended_shape(sample_shape), dtype=dtype)
        eps = gt.finfo(dtype).eps
        drawn = uniform * (2 - eps) + (eps - 1)  # between -1 and 1
        return self.loc - self.scale * drawn.sign() * (-drawn.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most `value`."""
        self._check_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * (-distance.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        """Return 1 + log(2 scale)."""
        return 1 + (2 * self.scale).log()
