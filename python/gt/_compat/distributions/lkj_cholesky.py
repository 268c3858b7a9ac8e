"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L, dim x dim, of correlation matrices with density ~ det(L L^T)^(c - 1).

    c is `concentration`; for c = 1 the correlation matrices are uniformly distributed. Samples are
    drawn by the onion method (Lewandowski, Kurowicka and Joe, "Generating random correlation
    matrices based on vines and extended onion method", 2009, section 3).

    >>> from gt.distributions import LKJCholesky
    >>> LKJCholesky(3, 0.5).sample().shape
    (3, 3)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared norm of row i without its diagonal element has a beta distribution.
        row = gt.arange(dim, dtype=self.concentration.dtype)
        before = (row - 1).clamp(min=0)
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(before + 0.5, marginal.unsqueeze(-1) - 0.5 * before, validate_args=False)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw factors: rows with random directions and norms left of the diagonal."""
        dtype = self.concentration.dtype
        with gt.no_grad():
            normal = gt.randn(self._extended_shape(sample_shape), dtype=dtype).tril(-1)
            below = gt.ones((self.dim, self.dim), dtype=gt.bool).tril(-1)
            length = gt.linalg.norm(normal, dim=-1, keepdim=True)
            direction = gt.where(below, normal / length, 0.0)
            beside = self._beta.sample(sample_shape).unsqueeze(-1).sqrt() * direction
            rest = (1 - (beside**2).sum(-1)).clamp(min=gt.finfo(dtype).tiny)
            return beside + gt.diag_embed(rest.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density of a factor.

        The density is proportional to the product of L_ii^(2 (c - 1) + dim - i), with i from 2
        (https://mc-stan.org/docs/functions-reference/correlation_matrix_distributions.html).
        """
        self._check_sample(value)
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        row = gt.arange(2, self.dim + 1, dtype=self.concentration.dtype)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        others = self.dim - 1
        alpha = self.concentration + 0.5 * others
        normalizer = (
            0.5 * others * math.log(math.pi)
            + gt.mvlgamma(alpha - 0.5, others)
            - gt.lgamma(alpha) * others
        )
        return (power * diagonal.log()).sum(-1) - normalizer
