"""Optimizers, with PyTorch's definitions and defaults."""

import math
from collections.abc import Iterable
from typing import Any

from gt import _gt
from gt._gt import Tensor
from gt.autograd import no_grad
from gt.nn.module import forget_grad

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


class Optimizer:
    """Changes parameters by their gradients; subclasses define `_update`."""

    def __init__(self, params: Iterable[Tensor] | Iterable[dict], lr: float):
        given: list[Any] = list(params)
        groups: list[dict[str, Any]] = [{"params": given}]
        if given and isinstance(given[0], dict):
            groups = given
        #: Each with its `params` and `lr`, which may be changed while training.
        self.param_groups: list[dict[str, Any]] = [
            {"lr": lr, **group, "params": list(group["params"])} for group in groups
        ]
        if not self.params:
            raise ValueError("an optimizer needs at least one parameter, none were given")
        for parameter in self.params:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"a parameter must be a tensor, not {type(parameter).__name__}")
        for group in self.param_groups:
            _at_least_zero(lr=group["lr"])
        self.state: list[dict] = [{} for _ in self.params]

    @property
    def params(self) -> list[Tensor]:
        """The parameters of all groups."""
        return [parameter for group in self.param_groups for parameter in group["params"]]

    @property
    def lr(self) -> float:
        """The learning rate of the first group; setting it sets that of all."""
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, lr: float) -> None:
        for group in self.param_groups:
            group["lr"] = lr

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        with no_grad():
            states = iter(self.state)
            for group in self.param_groups:
                for parameter in group["params"]:
                    state, grad = next(states), parameter.grad
                    if grad is not None:
                        self._update(parameter, grad, state, group["lr"])

    def _update(self, parameter: Tensor, grad: Tensor, state: dict, lr: float) -> None:
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zero."""
        for parameter in self.params:
            if parameter.requires_grad:
                forget_grad(parameter, set_to_none)

    def state_dict(self) -> dict:
        """Give the learning rates and what is kept for each parameter."""
        rates = [group["lr"] for group in self.param_groups]
        return {"lr": rates, "state": [dict(state) for state in self.state]}

    def load_state_dict(self, state: dict) -> None:
        """Take the state of an optimizer of the same parameters."""
        if len(state["state"]) != len(self.params):
            raise ValueError(
                f"load_state_dict: state of {len(state['state'])} parameters given, "
                f"this optimizer has {len(self.params)}"
            )
        for group, lr in zip(self.param_groups, state["lr"], strict=True):
            group["lr"] = lr
        self.state = [dict(entry) for entry in state["state"]]


def _at_least_zero(**settings: float) -> None:
    for name, value in settings.items():
        if value < 0:
            raise ValueError(f"{name} is {value}, which must not be negative")


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al., ICML 2013, as PyTorch)."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.01,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ):
        super().__init__(params, lr)
        _at_least_zero(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        self.momentum, self.dampening = momentum, dampening
        self.weight_decay, self.nesterov = weight_decay, nesterov

    def _update(self, parameter: Tensor, grad: Tensor, state: dict, lr: float) -> None:
        if self.weight_decay:
            grad = _gt.apply("mul_add", [grad, parameter, self.weight_decay])
        if self.momentum:
            velocity = state.get("velocity")
            if velocity is None:
                velocity = grad
            else:
                damped = grad if not self.dampening else grad * (1 - self.dampening)
                velocity = _gt.apply("mul_add", [damped, velocity, self.momentum])
            state["velocity"] = velocity
            grad = (
                _gt.apply("mul_add", [grad, velocity, self.momentum]) if self.nesterov else velocity
            )
        parameter.add_scaled_(grad, -lr)


class Adam(Optimizer):
    """Adam (Kingma and Ba, ICLR 2015); weight decay is added to the gradient."""

    decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, lr)
        _at_least_zero(eps=eps, weight_decay=weight_decay)
        for beta in betas:
            if not 0 <= beta < 1:
                raise ValueError(f"betas are {betas}, each must be at least 0 and below 1")
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay

    def _update(self, parameter: Tensor, grad: Tensor, state: dict, lr: float) -> None:
        beta1, beta2 = self.betas
        if self.weight_decay:
            if self.decoupled:
                parameter.mul_(1 - lr * self.weight_decay)
            else:
                grad = _gt.apply("mul_add", [grad, parameter, self.weight_decay])
        step = state.get("step", 0) + 1
        if step == 1:
            mean, square = grad * (1 - beta1), grad * grad * (1 - beta2)
        else:
            mean = _gt.apply("mul_add", [state["mean"] * beta1, grad, 1 - beta1])
            square = _gt.apply("mul_add", [state["square"] * beta2, grad * grad, 1 - beta2])
        state.update(step=step, mean=mean, square=square)
        scale = math.sqrt(1 - beta2**step)
        denominator = square.sqrt() * (1 / scale) + self.eps
        parameter.add_scaled_(mean / denominator, -lr / (1 - beta1**step))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        super().__init__(params, lr, betas, eps, weight_decay)
