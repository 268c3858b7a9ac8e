"""The base of distributions that take either a probability or its log-odds."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from ._alias import alias
from .distribution import Distribution
from .utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


def need_one(probs: Any, logits: Any) -> None:
    """Raise a ValueError unless exactly one of the two parameters is given."""
    if (probs is None) == (logits is None):
        given = "neither" if probs is None else "both"
        raise ValueError(
            f"Either `probs` or `logits` must be specified, but not both; got {given}."
        )


class WithOdds(Distribution):
    """A distribution with a probability `probs` or log-odds `logits`.

    The parameter that is not given is computed from the other when it is first read.
    """

    param_shape: Any = alias("_param.shape", "The shape of the given parameter.")

    def _keep(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Store the given parameter, broadcast with `others`; return the broadcast `others`."""
        need_one(probs, logits)
        self._given = "logits" if probs is None else "probs"
        kept, *broadcast = broadcast_all(logits if probs is None else probs, *others)
        self.__dict__[self._given] = kept
        return tuple(broadcast)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        return self.__dict__[self._given]
