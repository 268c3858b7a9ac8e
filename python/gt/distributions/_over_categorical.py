"""The base of distributions over vectors that are defined by the weights of K categories."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt.distributions import constraints
from gt.distributions.categorical import Categorical
from gt.distributions.distribution import Distribution


class OverCategorical(Distribution):
    """A distribution over vectors of length K, with weights `probs` or their logarithms `logits`.

    Both are of shape (..., K), and kept by a `Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        """The shape of the weights."""
        return self._categorical.param_shape
