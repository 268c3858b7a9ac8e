"""Exponential families: entropy from the log normalizer."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of distributions with the density exp(t(x) theta - F(theta) + k(x)).

    t is the sufficient statistic, theta the natural parameters, F the log normalizer and k the
    carrier measure. A subclass defines `_natural_params`, `_log_normalizer(*natural_params)` and
    `_mean_carrier_measure`; entropy and KL divergence follow from the gradient of F, which is the
    mean of t (Bregman divergence; Nielsen and Nock, https://arxiv.org/abs/1112.4221).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy in nats: F(theta) - theta grad F(theta) - E[k(x)]."""
        carrier = self._mean_carrier_measure
        parameters, normalizer, means = self._mean_statistics()
        result = normalizer - carrier
        for parameter, mean in zip(parameters, means, strict=True):
            result = result - (parameter * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return result

    def _mean_statistics(self) -> tuple[list[Tensor], Tensor, list[Tensor]]:
        """Return theta, F(theta) and grad F(theta), which is the mean of t(x)."""
        wanted = gt.is_grad_enabled() and any(p.requires_grad for p in self._natural_params)
        with gt.enable_grad():
            parameters = [
                parameter
                if wanted and parameter.requires_grad
                else parameter.detach().requires_grad_()
                for parameter in self._natural_params
            ]
            normalizer = self._log_normalizer(*parameters)
            means: Any = gt.autograd.grad(normalizer.sum(), parameters, create_graph=wanted)
        if wanted:
            return parameters, normalizer, list(means)
        return [p.detach() for p in parameters], normalizer.detach(), [m.detach() for m in means]
