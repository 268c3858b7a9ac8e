"""Variants of Adam."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, primitives

from .adam import moments
from .optimizer import Group, Optimizer, Parameters, decayed
from .options import options


class SparseAdam(Optimizer):
    """Adam for sparse gradients. GT's gradients are dense, which raise an error as in PyTorch."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        if isinstance(lr, float) and not lr > 0:
            raise ValueError(f"lr is {lr}, which must be above 0")
        super().__init__(params, options(locals()))

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        raise RuntimeError(
            "SparseAdam does not support dense gradients, please consider Adam instead"
        )


class NAdam(Optimizer):
    """Adam with Nesterov momentum (Dozat, ICLR workshop 2016)."""

    _counters = ("step", "mu_product")

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, options(locals()))

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["momentum_decay"] < 0:
            raise ValueError(
                f"momentum_decay is {group['momentum_decay']}, which must not be negative"
            )

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["momentum_decay"]
        grad = decayed(parameter, grad, group, group["decoupled_weight_decay"])
        if not state:
            state.update(step=0, mu_product=1.0)
        mean, square = moments(grad, state, group)
        step = state["step"]
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
        following = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        product = state["mu_product"] = state["mu_product"] * mu
        scale = math.sqrt(1 - beta2**step)
        for what, share in (
            (grad, (1 - mu) / (1 - product)),
            (mean, following / (1 - product * following)),
        ):
            parameter.copy_(
                primitives.adam_step(
                    parameter, what, square, 1.0, lr * share, 1 / scale, group["eps"]
                )
            )


class RAdam(Optimizer):
    """Adam with a rectified variance (Liu et al., ICLR 2020)."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(
            params,
            options(
                locals(),
                first=("lr", "betas", "eps", "weight_decay", "maximize", "foreach", "capturable"),
            ),
        )

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = group["betas"]
        grad = decayed(parameter, grad, group, group["decoupled_weight_decay"])
        mean, square = moments(grad, state, group)
        step = state["step"]
        rate = group["lr"] / (1 - beta1**step)
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / (1 - beta2**step)
        if length <= 5:
            parameter.add_scaled_(mean, -rate)
            return
        rectified = math.sqrt(
            (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        )
        rate *= rectified * math.sqrt(1 - beta2**step)
        parameter.copy_(primitives.adam_step(parameter, mean, square, 1.0, rate, 1.0, group["eps"]))


class Adamax(Optimizer):
    """Adam with the infinity norm of gradients (Kingma and Ba, ICLR 2015, section 7.1)."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, options(locals()))

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        beta1, beta2 = group["betas"]
        grad = decayed(parameter, grad, group)
        step = state.get("step", 0) + 1
        size = grad.abs() + group["eps"]
        if step == 1:
            mean, greatest = grad * (1 - beta1), size
        else:
            mean = primitives.mul_add(state["exp_avg"] * beta1, grad, 1 - beta1)
            greatest = gt.maximum(state["exp_inf"] * beta2, size)
        state.update(step=step, exp_avg=mean, exp_inf=greatest)
        parameter.add_scaled_(mean / greatest, -group["lr"] / (1 - beta1**step))
