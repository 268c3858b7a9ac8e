"""Adafactor, which keeps only row and column averages of squared gradients."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor

from .optimizer import Group, Optimizer, Parameters
from .options import options


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, ICML 2018), with PyTorch's learning rate.

    The norms of parameters and updates are compared on the workers, so a step fetches no value.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        super().__init__(params, options(locals()))

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["beta2_decay"] > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {group['beta2_decay']}")
        if group["d"] < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {group['d']}")

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        eps1, eps2 = group["eps"]
        eps1 = gt.finfo(parameter.dtype).eps if eps1 is None else eps1
        step = state["step"] = state.get("step", 0) + 1
        lr, share = group["lr"], step ** group["beta2_decay"]
        rate = min(lr, 1 / step**0.5)
        size = (parameter.norm(2) / parameter.numel() ** 0.5).clamp(min=eps2)
        if group["weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        estimate = self._estimate(grad, state, share, eps1)
        update = estimate.clamp(min=eps1 * eps1).rsqrt() * grad
        excess = (update.norm(2) / (update.numel() ** 0.5 * group["d"])).clamp(min=1.0)
        parameter.sub_(update * (size * rate / excess))

    def _estimate(self, grad: Tensor, state: dict[str, Any], share: float, eps: float) -> Tensor:
        """Update and return the estimate of the running average of squared gradients."""
        if grad.dim() <= 1:
            variance = _averaged(state.get("variance"), grad * grad, share)
            state["variance"] = variance
            return variance
        squares = grad * grad
        row = _averaged(state.get("row_var"), squares.mean(-1, keepdim=True), share)
        column = _averaged(state.get("col_var"), squares.mean(-2, keepdim=True), share)
        state.update(row_var=row, col_var=column)
        return row @ column / row.mean(-2, keepdim=True).clamp(min=eps)


def _averaged(before: Tensor | None, now: Tensor, share: float) -> Tensor:
    """Return the next value of a running average that starts at zero."""
    return now * share if before is None else before + (now - before) * share
