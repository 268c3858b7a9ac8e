"""Optimizers, with PyTorch's definitions, defaults and names of what they keep."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from gt import _gt
from gt._gt import Tensor, primitives
from gt.autograd import enable_grad, no_grad
from gt.nn.module import forget_grad

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]

Group = dict[str, Any]
Parameters = Iterable[Tensor] | Iterable[Group]


class Optimizer:
    """Changes parameters by their gradients; subclasses define `_update`.

    Parameters may come in groups, `[{"params": [...], "lr": 0.1}, ...]`; what a group does not
    set is as in `defaults`. Options in `param_groups` may be changed while training.
    """

    def __init__(self, params: Parameters, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError("an optimizer takes a list of parameters, a tensor was given")
        given: list[Any] = list(params)
        groups = given if given and isinstance(given[0], dict) else [{"params": given}]
        self.defaults = defaults
        self.param_groups: list[Group] = []
        #: What is kept for each parameter, in the order of the groups.
        self.state: list[dict[str, Any]] = []
        for group in groups:
            self.add_param_group(group)
        if not self.params:
            raise ValueError("an optimizer needs at least one parameter, none were given")

    def add_param_group(self, group: Group) -> None:
        """Train more parameters, with options of their own."""
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        group = {**self.defaults, **group, "params": params}
        known = {id(parameter) for parameter in self.params}
        for parameter in params:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"a parameter must be a tensor, not {type(parameter).__name__}")
            if not parameter.is_leaf:
                raise ValueError(
                    "a parameter must be a leaf, one is the result of other tensors, so its "
                    "gradient is not kept\n  hint: optimize what it is made from, or detach() it"
                )
            if id(parameter) in known:
                raise ValueError("a parameter is given twice")
            known.add(id(parameter))
        self._check(group)
        self.param_groups.append(group)
        self.state += [{} for _ in params]

    def _check(self, group: Group) -> None:
        """Raise an error if a group's options make no sense."""
        _at_least_zero(group, "lr", "weight_decay")

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

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient.

        A closure is called first, to compute loss and gradients; its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            states = iter(self.state)
            for group in self.param_groups:
                for parameter in group["params"]:
                    state, grad = next(states), parameter.grad
                    if grad is not None:
                        self._update(parameter, grad, state, group)
        return loss

    def _update(self, parameter: Tensor, grad: Tensor, state: dict, group: Group) -> None:
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zero."""
        for parameter in self.params:
            forget_grad(parameter, set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Give all options and what is kept for each parameter, laid out as PyTorch's."""
        groups, first = [], 0
        for group in self.param_groups:
            last = first + len(group["params"])
            groups.append({**group, "params": list(range(first, last))})
            first = last
        kept = {index: dict(state) for index, state in enumerate(self.state) if state}
        return {"state": kept, "param_groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take the state of an optimizer of the same parameters, PyTorch's too."""
        sizes = [len(group["params"]) for group in state["param_groups"]]
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise ValueError(
                f"load_state_dict: state of groups of {sizes} parameters given, "
                f"this optimizer has groups of {own}"
            )
        for group, other in zip(self.param_groups, state["param_groups"], strict=True):
            group.update({name: value for name, value in other.items() if name != "params"})
        for index, parameter in enumerate(self.params):
            kept = state["state"].get(index, {})
            self.state[index] = {name: _kept(value, parameter) for name, value in kept.items()}


def _kept(value: Any, parameter: Tensor) -> Any:
    """An entry of a state: a number, or a tensor of the parameter's shape."""
    if getattr(value, "shape", None) == ():
        return value.item()
    return value if isinstance(value, (int, float, type(None))) else _as(value, parameter)


def _as(value: Any, parameter: Tensor) -> Tensor:
    value = value if isinstance(value, Tensor) else _gt.tensor_beside(parameter, value)
    if value.shape != parameter.shape:
        raise ValueError(
            f"load_state_dict: state of shape {value.shape} for a parameter of {parameter.shape}"
        )
    return value.detach().to(parameter.dtype)


def _at_least_zero(group: Group, *names: str) -> None:
    for name in names:
        if group[name] < 0:
            raise ValueError(f"{name} is {group[name]}, which must not be negative")


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al., ICML 2013, as PyTorch)."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 0.01,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ):
        options = dict(lr=lr, momentum=momentum, dampening=dampening)
        super().__init__(params, {**options, "weight_decay": weight_decay, "nesterov": nesterov})

    def _check(self, group: Group) -> None:
        super()._check(group)
        _at_least_zero(group, "momentum")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")

    def _update(self, parameter: Tensor, grad: Tensor, state: dict, group: Group) -> None:
        momentum, dampening = group["momentum"], group["dampening"]
        if group["weight_decay"]:
            grad = primitives.mul_add(grad, parameter, group["weight_decay"])
        if momentum:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                # Its own tensor: the gradient may be set to zero in place.
                velocity = grad.detach()
            else:
                damped = grad * (1 - dampening) if dampening else grad
                velocity = primitives.mul_add(damped, velocity, momentum)
            state["momentum_buffer"] = velocity
            nesterov = group["nesterov"]
            grad = primitives.mul_add(grad, velocity, momentum) if nesterov else velocity
        parameter.add_scaled_(grad, -group["lr"])


class Adam(Optimizer):
    """Adam (Kingma and Ba, ICLR 2015); weight decay is added to the gradient."""

    decoupled = False

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def _check(self, group: Group) -> None:
        super()._check(group)
        _at_least_zero(group, "eps")
        for beta in group["betas"]:
            if not 0 <= beta < 1:
                raise ValueError(f"betas are {group['betas']}, each must be at least 0 and below 1")

    def _update(self, parameter: Tensor, grad: Tensor, state: dict, group: Group) -> None:
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        if decay and self.decoupled:
            parameter.mul_(1 - lr * decay)
        elif decay:
            grad = primitives.mul_add(grad, parameter, decay)
        step = state.get("step", 0) + 1
        if step == 1:
            mean, square = grad * (1 - beta1), grad * grad * (1 - beta2)
        else:
            mean = primitives.mul_add(state["exp_avg"] * beta1, grad, 1 - beta1)
            square = primitives.mul_add(state["exp_avg_sq"] * beta2, grad * grad, 1 - beta2)
        state.update(step=step, exp_avg=mean, exp_avg_sq=square)
        scale = math.sqrt(1 - beta2**step)
        denominator = square.sqrt() * (1 / scale) + group["eps"]
        parameter.add_scaled_(mean / denominator, -lr / (1 - beta1**step))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)."""

    decoupled = True

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        super().__init__(params, lr, betas, eps, weight_decay)
