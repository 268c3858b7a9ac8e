"""Optimizers, with PyTorch's definitions and defaults."""

import math
from collections.abc import Iterable

from gt import _gt
from gt._gt import Tensor
from gt.autograd import no_grad

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


class Optimizer:
    """Changes parameters by their gradients; subclasses define `_update`."""

    def __init__(self, params: Iterable[Tensor], lr: float):
        self.params = list(params)
        if not self.params:
            raise ValueError("an optimizer needs at least one parameter, none were given")
        for parameter in self.params:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"a parameter must be a tensor, not {type(parameter).__name__}")
        if lr < 0:
            raise ValueError(f"the learning rate is {lr}, which must not be negative")
        self.lr = lr
        self.state: list[dict] = [{} for _ in self.params]

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        with no_grad():
            for parameter, state in zip(self.params, self.state, strict=True):
                grad = parameter.grad
                if grad is not None:
                    self._update(parameter, grad, state)

    def _update(self, parameter: Tensor, grad: Tensor, state: dict) -> None:
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.params:
            parameter.grad = None

    def state_dict(self) -> dict:
        """Give the learning rate and what is kept for each parameter."""
        return {"lr": self.lr, "state": [dict(state) for state in self.state]}

    def load_state_dict(self, state: dict) -> None:
        """Take the state of an optimizer of the same parameters."""
        if len(state["state"]) != len(self.params):
            raise ValueError(
                f"load_state_dict: state of {len(state['state'])} parameters given, "
                f"this optimizer has {len(self.params)}"
            )
        self.lr = state["lr"]
        self.state = [dict(entry) for entry in state["state"]]


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
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        self.momentum, self.dampening = momentum, dampening
        self.weight_decay, self.nesterov = weight_decay, nesterov

    def _update(self, parameter: Tensor, grad: Tensor, state: dict) -> None:
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
        parameter.add_scaled_(grad, -self.lr)


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
        for beta in betas:
            if not 0 <= beta < 1:
                raise ValueError(f"betas are {betas}, each must be at least 0 and below 1")
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay

    def _update(self, parameter: Tensor, grad: Tensor, state: dict) -> None:
        beta1, beta2 = self.betas
        if self.weight_decay:
            if self.decoupled:
                parameter.mul_(1 - self.lr * self.weight_decay)
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
        parameter.add_scaled_(mean / denominator, -self.lr / (1 - beta1**step))


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
