"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from . import constraints
from ._alias import alias
from ._odds import need_one
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """Categorical distribution over the integers 0 to K - 1, with weights of shape (..., K).

    `probs` are nonnegative weights, `logits` logarithms of weights; both are normalized so that
    the probabilities sum to 1.

    >>> from gt.distributions import Categorical
    >>> Categorical(gt.tensor([1.0, 3.0])).probs
    tensor([0.25, 0.75], dtype=float32)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    param_shape: Any = alias("_param.shape", "The shape of the weights.")
    variance: Tensor = alias("mean", "NaN: categories have no numeric value.")

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        need_one(probs, logits)
        self._given = "logits" if probs is None else "probs"
        given: Any = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The integers from 0 to K - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Tensor:
        return self.__dict__[self._given]

    @property
    def mean(self) -> Tensor:
        """NaN: categories have no numeric value."""
        return gt.full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        """The category with the largest weight."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw categories, as int64."""
        shape = self._extended_shape(sample_shape)
        with gt.no_grad():
            weights = self.probs.reshape((-1, self._num_events))
            count = math.prod(sample_shape)
            return gt.multinomial(weights, count, replacement=True).mT.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithms of the values' probabilities."""
        self._check_sample(value)
        shape = gt.broadcast_shapes(value.shape, self._batch_shape)
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, value.long().expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        logits = self.logits.clamp(min=gt.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return 0 to K - 1 along axis 0."""
        values = gt.arange(self._num_events, dtype=gt.int64)
        values = values.reshape((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
