"""Optimizers that scale updates by accumulated squared gradients."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor, primitives

from .checks import at_least_zero
from .optimizer import Group, Optimizer, Parameters, decayed
from .options import options


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., JMLR 2011)."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(params, options(locals(), first=("lr", "lr_decay", "eps")))
        for group in self.param_groups:
            start = group["initial_accumulator_value"]
            for parameter in group["params"]:
                value = complex(start, start) if parameter.is_complex() else start
                total = parameter.detach().new_full(parameter.shape, value)
                self.state[parameter] = {"step": 0, "sum": total}

    def _check(self, group: Group) -> None:
        super()._check(group)
        at_least_zero(group, "lr_decay", "initial_accumulator_value")

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        step = state["step"] = state["step"] + 1
        grad = decayed(parameter, grad, group)
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        total = state["sum"] = state["sum"] + grad * grad
        parameter.add_scaled_(grad / (total.sqrt() + group["eps"]), -rate)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012)."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(
            params,
            options(locals(), first=("lr", "rho", "eps", "weight_decay", "maximize", "capturable")),
        )

    def _check(self, group: Group) -> None:
        super()._check(group)
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"rho is {group['rho']}, expected 0 to 1")

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        rho, eps = group["rho"], group["eps"]
        if not state:
            zeros = parameter.new_zeros(parameter.shape)
            state.update(step=0, square_avg=zeros, acc_delta=zeros)
        grad = decayed(parameter, grad, group)
        square = primitives.mul_add(state["square_avg"] * rho, grad * grad, 1 - rho)
        change = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * grad
        total = primitives.mul_add(state["acc_delta"] * rho, change * change, 1 - rho)
        state.update(step=state["step"] + 1, square_avg=square, acc_delta=total)
        parameter.add_scaled_(change, -group["lr"])


class RMSprop(Optimizer):
    """RMSprop (Hinton, 2012); with `centered`, the variant of Graves (2013)."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(
            params, options(locals(), first=("lr", "momentum", "alpha", "eps", "centered"))
        )

    def _check(self, group: Group) -> None:
        super()._check(group)
        at_least_zero(group, "alpha")

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        if not state:
            zeros = parameter.new_zeros(parameter.shape)
            state.update(step=0, square_avg=zeros)
            if momentum > 0:
                state["momentum_buffer"] = zeros
            if group["centered"]:
                state["grad_avg"] = zeros
        state["step"] += 1
        grad = decayed(parameter, grad, group)
        square = primitives.mul_add(state["square_avg"] * alpha, grad * grad, 1 - alpha)
        state["square_avg"] = square
        if group["centered"]:
            mean = primitives.mul_add(state["grad_avg"] * alpha, grad, 1 - alpha)
            state["grad_avg"], square = mean, square - mean * mean
        change = grad / (square.sqrt() + group["eps"])
        if momentum > 0:
            change = state["momentum_buffer"] = primitives.mul_add(
                change, state["momentum_buffer"], momentum
            )
        parameter.add_scaled_(change, -group["lr"])
