"""Optimizers that use the signs of gradients."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, begin_with, primitives

from .optimizer import Group, Optimizer, Parameters, decayed
from .options import options


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, ICNN 1993)."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, options(locals()))

    def _check(self, group: Group) -> None:
        super()._check(group)
        low, high = group["etas"]
        if not 0 < low < 1 < high:
            raise ValueError(f"etas are {group['etas']}, expected one below and one above 1")

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        (low, high), (least, most) = group["etas"], group["step_sizes"]
        if not state:
            state.update(
                step=0,
                prev=parameter.new_zeros(parameter.shape),
                step_size=parameter.new_full(parameter.shape, group["lr"]),
            )
            begin_with(state)
        agrees = grad * state["prev"]
        falls = gt.where(agrees < 0, gt.full_like(grad, low), gt.ones_like(grad))
        factor = gt.where(agrees > 0, gt.full_like(grad, high), falls)
        size = (state["step_size"] * factor).clamp(least, most)
        # Elements whose gradient changed its sign take no step.
        grad = gt.where(agrees < 0, gt.zeros_like(grad), grad)
        state.update(step=state["step"] + 1, prev=grad.detach(), step_size=size)
        parameter.add_scaled_(grad.sign() * size, -1.0)


class Lion(Optimizer):
    """Lion (Chen et al., NeurIPS 2023); weight decay is decoupled."""

    _counters = ()

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ):
        super().__init__(params, options(locals()))

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = group["betas"]
        mean = state.get("exp_avg")
        mean = gt.zeros_like(grad) if mean is None else mean
        decayed(parameter, grad, group, decoupled=True)
        change = primitives.mul_add(mean * beta1, grad, 1 - beta1).sign()
        state["exp_avg"] = primitives.mul_add(mean * beta2, grad, 1 - beta2)
        parameter.add_scaled_(change, -group["lr"])
