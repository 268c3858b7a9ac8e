"""Stochastic gradient descent, plain and averaged."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor, add_scaled_gradients, primitives

from .optimizer import Group, Optimizer, Parameters, decayed
from .options import options


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al., ICML 2013, in PyTorch's form).

    `foreach` and `fused` are accepted as in PyTorch and do not change results.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(params, options(locals()))

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")

    def _update_group(self, group: Group) -> None:
        rate = group["lr"]
        is_plain = not (
            group["momentum"]
            or group["weight_decay"]
            or group["maximize"]
            or isinstance(rate, Tensor)
        )
        if not (is_plain and add_scaled_gradients(group["params"], -rate)):
            super()._update_group(group)

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        momentum, dampening = group["momentum"], group["dampening"]
        grad = decayed(parameter, grad, group)
        if momentum:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                # Copied, because the gradient may be set to zero in place.
                velocity = grad.detach().clone()
            else:
                damped = grad * (1 - dampening) if dampening else grad
                velocity = primitives.mul_add(damped, velocity, momentum)
            state["momentum_buffer"] = velocity
            nesterov = group["nesterov"]
            grad = primitives.mul_add(grad, velocity, momentum) if nesterov else velocity
        parameter.add_scaled_(grad, -group["lr"])


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, SIAM J. Control 1992)."""

    _counters = ("step", "eta", "mu")

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, options(locals()))

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        lr, lambd = group["lr"], group["lambd"]
        if not state:
            state.update(step=0, eta=lr, mu=1.0, ax=parameter.new_zeros(parameter.shape))
        step = state["step"] = state["step"] + 1
        grad = decayed(parameter, grad, group)
        eta, mu = state["eta"], state["mu"]
        parameter.mul_(1 - lambd * eta)
        parameter.add_scaled_(grad, -eta)
        average, current = state["ax"], parameter.detach().clone()
        state["ax"] = current if mu == 1 else average + (current - average) * mu
        state["eta"] = lr / (1 + lambd * lr * step) ** group["alpha"]
        state["mu"] = 1 / max(1, step - group["t0"])
