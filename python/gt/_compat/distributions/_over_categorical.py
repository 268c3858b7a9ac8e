"""The base of distributions over vectors that are defined by the weights of K categories."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from . import constraints
from ._alias import alias
from .categorical import Categorical
from .distribution import Distribution


class OverCategorical(Distribution):
    """A distribution over vectors of length K, with weights `probs` or their logarithms `logits`.

    Both are of shape (..., K), and kept by a `Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    logits: Tensor = alias("_categorical.logits", "The logarithms of the probabilities.")
    probs: Tensor = alias("_categorical.probs", "The probabilities.")
    param_shape: Any = alias("_categorical.param_shape", "The shape of the weights.")

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
