"""Distributions with batch axes reinterpreted as event axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .distribution import Distribution
from .utils import sum_rightmost

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution whose last `reinterpreted_batch_ndims` batch axes become event axes.

    Log probabilities and entropies are summed over these axes.

    >>> from gt.distributions import Independent, Normal
    >>> Independent(Normal(gt.zeros(3, 2), gt.ones(3, 2)), 1).event_shape
    (2,)
    """

    arg_constraints: Any = {}
    base_dist: D
    mean: Tensor = alias("base_dist.mean", "The base distribution's mean.")
    mode: Tensor = alias("base_dist.mode", "The base distribution's mode.")
    variance: Tensor = alias("base_dist.variance", "The base distribution's variance.")
    has_rsample: bool = alias(
        "base_dist.has_rsample", "Whether the base distribution has `rsample`."
    )

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = tuple(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        kept = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        event = (*batch[kept:], *base_distribution.event_shape)
        super().__init__(batch[:kept], event, validate_args=validate_args)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether the base distribution has it and no batch axes are reinterpreted."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        """The base distribution's support, for events with more axes."""
        base = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(base, count) if count else base

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values of the base distribution, without gradients."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values of the base distribution, with gradients."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the base distribution's `log_prob`, summed over the reinterpreted axes."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """Return the base distribution's entropy, summed over the reinterpreted axes."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return the base distribution's values.

        Raises a NotImplementedError if batch axes are reinterpreted.
        """
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
