"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: a categorical distribution selects the component that a value is drawn from.

    The components lie along the last batch axis of `component_distribution`.

    >>> from gt.distributions import Categorical, MixtureSameFamily, Normal
    >>> components = Normal(gt.tensor([0.0, 4.0]), gt.ones(2))
    >>> MixtureSameFamily(Categorical(gt.tensor([1.0, 3.0])), components).mean
    tensor(3., dtype=float32)
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            kind = type(mixture_distribution).__name__
            raise ValueError(
                f"The Mixture distribution needs to be an instance of Categorical, not {kind}"
            )
        if not isinstance(component_distribution, Distribution):
            kind = type(component_distribution).__name__
            raise ValueError(
                f"The Component distribution needs to be an instance of Distribution, not {kind}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        chosen = tuple(mixture_distribution.batch_shape)
        *batch, count = component_distribution.batch_shape
        for own, other in zip(reversed(chosen), reversed(batch), strict=False):
            if own != other and 1 not in (own, other):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({chosen}) is not compatible with "
                    f"`component_distribution.batch_shape` ({(*batch, count)})"
                )
        weights = mixture_distribution.param_shape[-1]
        if weights != count:
            raise ValueError(
                f"`mixture_distribution component` ({weights}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({count})"
            )
        event = component_distribution.event_shape
        #: The axis of the components in their means, variances and samples.
        self._axis = -1 - len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def _expand_part(self, part: Distribution, batch_shape: Sequence[int]) -> Distribution:
        if part is self._mixture_distribution:
            return part.expand(batch_shape)
        return super()._expand_part(part, batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        """The values that are in the support of every component."""
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that selects components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        """Return the components' probabilities, with an axis of length 1 for each event axis."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * len(self._event_shape)))

    @property
    def mean(self) -> Tensor:
        """The weighted mean of the components' means."""
        return (self._weights() * self._component_distribution.mean).sum(self._axis)

    @property
    def variance(self) -> Tensor:
        """The weighted mean of the components' variances plus the variance of their means."""
        components, weights = self._component_distribution, self._weights()
        within = (weights * components.variance).sum(self._axis)
        distance = components.mean - self.mean.unsqueeze(self._axis)
        return within + (weights * distance**2).sum(self._axis)

    def cdf(self, x: Tensor) -> Tensor:
        """Return the weighted mean of the components' cumulative distribution functions."""
        own = self._component_distribution.cdf(x.unsqueeze(self._axis))
        return (own * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the logarithm of the weighted mean of the components' densities."""
        self._check_sample(x)
        own = self._component_distribution.log_prob(x.unsqueeze(self._axis))
        return (own + gt.log_softmax(self._mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw a value from every component, and select one of them."""
        with gt.no_grad():
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            axes = len(self._event_shape)
            shape = self._extended_shape(sample_shape)
            batch = shape[: len(shape) - axes]
            places = chosen.reshape((*batch, 1, *[1] * axes))
            places = places.expand((*batch, 1, *self._event_shape))
            return values.gather(self._axis, places).squeeze(self._axis)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n  {self._mixture_distribution},\n"
            f"  {self._component_distribution})"
        )
