"""Distributions of transformed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = t(x) for x of a base distribution; t is a transform or a list.

    The density of y is that of x divided by |dy/dx|.

    >>> from gt.distributions import Normal, TransformedDistribution, transforms
    >>> base = Normal(gt.zeros(1), gt.ones(1))
    >>> TransformedDistribution(base, transforms.ExpTransform()).cdf(gt.tensor([1.0]))
    tensor([0.5], dtype=float32)
    """

    arg_constraints: Any = {}
    base_dist: Any
    has_rsample: bool = alias(
        "base_dist.has_rsample", "Whether the base distribution has `rsample`."
    )

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(
            isinstance(transform, Transform) for transform in self.transforms
        ):
            raise ValueError(
                f"transforms must be a Transform or a list of Transforms, but was {transforms}"
            )
        transform = ComposeTransform(self.transforms)
        domain_dim, codomain_dim = transform.domain.event_dim, transform.codomain.event_dim
        base_event_dim = len(base_distribution.event_shape)
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(base_shape) < domain_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{domain_dim}, but got {base_shape}."
            )
        shape = tuple(transform.forward_shape(base_shape))
        expanded = tuple(transform.inverse_shape(shape))
        if expanded != base_shape:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        if domain_dim > base_event_dim:
            base_distribution = Independent(base_distribution, domain_dim - base_event_dim)
        self.base_dist = base_distribution
        event_dim = max(codomain_dim, base_event_dim + codomain_dim - domain_dim)
        batch_dim = len(shape) - event_dim
        super().__init__(shape[:batch_dim], shape[batch_dim:], validate_args=validate_args)

    def _expand_part(self, part: Distribution, batch_shape: Sequence[int]) -> Distribution:
        shape: Any = gt.Size((*batch_shape, *self._event_shape))
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        return part.expand(shape[: len(shape) - len(part.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The codomain of the last transform, for events of this distribution."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        added = len(self._event_shape) - support.event_dim
        return constraints.independent(support, added) if added > 0 else support

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values of the base distribution, without gradients, and transform them."""
        with gt.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values of the base distribution, with gradients, and transform them."""
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log p(x) - log |dy/dx|, with p the base density and x the inverse of `value`."""
        self._check_sample(value)
        event_dim = len(self._event_shape)
        stretched: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            own = transform.log_abs_det_jacobian(x, y)
            stretched = stretched + sum_rightmost(own, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return sum_rightmost(base, event_dim - len(self.base_dist.event_shape)) - stretched

    def cdf(self, value: Tensor) -> Tensor:
        """Return the base `cdf` at x = t^-1(value), or 1 minus it where t is decreasing."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._rising(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Return the transform of the base distribution's quantile."""
        return self._transformed(self.base_dist.icdf(self._rising(value)))

    def _rising(self, probability: Tensor) -> Tensor:
        """Return `probability` if the transforms are increasing, else 1 - `probability`."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5
