"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, primitives

from .optimizer import Group, Optimizer, Parameters, decayed
from .options import options


def moments(grad: Tensor, state: dict[str, Any], group: Group) -> tuple[Tensor, Tensor]:
    """Update the running averages of gradients and squared gradients, and return both."""
    beta1, beta2 = group["betas"]
    step = state.get("step", 0) + 1
    if step == 1:
        mean, square = grad * (1 - beta1), grad * grad * (1 - beta2)
    else:
        mean = primitives.running_mean(state["exp_avg"], grad, beta1, 1 - beta1)
        square = primitives.running_square(state["exp_avg_sq"], grad, beta2, 1 - beta2)
    state.update(step=step, exp_avg=mean, exp_avg_sq=square)
    return mean, square


class Adam(Optimizer):
    """Adam (Kingma and Ba, ICLR 2015); weight decay is added to the gradient.

    With `amsgrad` it divides by the largest squared average so far (Reddi et al., ICLR 2018).
    `foreach`, `fused` and `capturable` are accepted as in PyTorch and do not change results.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        super().__init__(params, options(locals()))

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        keep = 1.0
        if group["decoupled_weight_decay"]:
            keep -= group["lr"] * group["weight_decay"]
        else:
            grad = decayed(parameter, grad, group)
        mean, square = moments(grad, state, group)
        if group["amsgrad"]:
            greatest = state.get("max_exp_avg_sq")
            square = square if greatest is None else gt.maximum(greatest, square)
            state["max_exp_avg_sq"] = square
        (beta1, beta2), step = group["betas"], state["step"]
        scale = math.sqrt(1 - beta2**step)
        rate = group["lr"] / (1 - beta1**step)
        parameter.copy_(
            primitives.adam_step(parameter, mean, square, keep, rate, 1 / scale, group["eps"])
        )


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(params, **options(locals()), decoupled_weight_decay=True)
