"""The base class of all optimizers."""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import gt
from gt import _gt
from gt._gt import Tensor
from gt.autograd import enable_grad
from gt.nn.hooks import RemovableHandle, add_hook
from gt.nn.module import forget_grad

from .checks import at_least_zero, check_betas, check_params, check_rate
from .options import required  # noqa: F401

Group: TypeAlias = dict[str, Any]
#: What is called before or after a step, or with a state.
Hook = Callable[..., Any]
Parameters: TypeAlias = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]


class Optimizer:
    """The base of optimizers, which update parameters from their gradients.

    Subclasses define `_update`, or `step`. Parameters may be passed in groups,
    `[{"params": [...], "lr": 0.1}, ...]`, and with names, as returned by `named_parameters()`;
    options that a group does not set are taken from `defaults`. Options in `param_groups` may be
    changed during training. `state` maps each parameter to its optimizer state.
    """

    #: Entries of a parameter's state that are Python numbers here, and tensors in a state dict.
    _counters: tuple[str, ...] = ("step",)
    #: Whether a step was made; a scheduler that steps before the optimizer warns.
    _has_stepped = False
    #: Whether steps are recorded for autograd, as for `differentiable=True`.
    _is_recorded = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Parameters, defaults: dict[str, Any]):
        check_params(type(self).__name__, params)
        given: list[Any] = list(params)
        if not given:
            raise ValueError(
                "optimizer got an empty parameter list: at least one is needed, none were given"
            )
        if defaults.get("fused") and defaults.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if defaults.get("fused") and defaults.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        self.defaults = defaults
        self._is_recorded = bool(defaults.get("differentiable"))
        self.param_groups: list[Group] = []
        #: The optimizer state of each parameter.
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self._make_hooks()
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(dict(group))

    def _make_hooks(self) -> None:
        self._step_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._state_dict_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._state_dict_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._load_state_dict_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._load_state_dict_post_hooks: OrderedDict[int, Hook] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._make_hooks()

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters, with its own options."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        if "params" not in param_group:
            raise KeyError(f"a parameter group has no 'params', it has {sorted(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs\n  hint: use a list"
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        named = [p for p in params if isinstance(p, tuple)]
        if named and len(named) < len(params):
            raise ValueError("all optimizer params should be with/without names.")
        group = {**self.defaults, **param_group, "params": [p[1] for p in named] or params}
        if named:
            group["param_names"] = [name for name, _ in named]
        self._check_params(group["params"])
        self._check(group)
        self.param_groups.append(group)

    def _check_params(self, params: list[Any]) -> None:
        known, seen = {id(parameter) for parameter in self.params}, set[int]()
        for parameter in params:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"a parameter must be a tensor, not {type(parameter).__name__}")
            if not (
                self.defaults.get("differentiable") or parameter.is_leaf or _retains(parameter)
            ):
                raise ValueError(
                    "a parameter must be a leaf, but one is the result of other tensors, so its "
                    "gradient is not kept\n  hint: optimize the tensors it is computed from, or "
                    "detach() it"
                )
            if id(parameter) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            if id(parameter) in seen:
                raise ValueError("a parameter is given twice")
            seen.add(id(parameter))

    def _check(self, group: Group) -> None:
        """Raise an error if a group's options are invalid."""
        if (lr := group.get("lr")) is not None:
            check_rate(lr)
        at_least_zero(group, "lr", "weight_decay", "eps", "momentum")
        check_betas(group.get("betas", ()))

    @property
    def params(self) -> list[Tensor]:
        """The parameters of all groups."""
        return [parameter for group in self.param_groups for parameter in group["params"]]

    @property
    def lr(self) -> float:
        """The learning rate of the first group; setting it sets the rate of all groups."""
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, lr: float) -> None:
        check_rate(lr)
        for group in self.param_groups:
            self._check({**group, "lr": lr})
        for group in self.param_groups:
            group["lr"] = lr

    # Stepping.

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        A closure is called first, to compute the loss and gradients; its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        before = _gt.set_grad_enabled(self._is_recorded)
        try:
            for group in self.param_groups:
                self._update_group(group)
        finally:
            _gt.set_grad_enabled(before)
        return loss

    def _update_group(self, group: Group) -> None:
        state, maximize, update = self.state, group.get("maximize", False), self._update
        if isinstance(group["lr"], Tensor):
            group = {**group, "lr": float(group["lr"])}
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            grad = -grad if maximize else grad
            if parameter.dtype.is_complex:
                self._update_parts(parameter, grad, state[parameter], group)
            else:
                update(parameter, grad, state[parameter], group)

    def _update_parts(
        self, parameter: Tensor, grad: Tensor, own: dict[str, Any], group: Group
    ) -> None:
        """Update a complex parameter viewed as a real one, with real and imaginary parts."""
        parts = {name: _as_real(value) for name, value in own.items()}
        self._update(gt.view_as_real(parameter), gt.view_as_real(grad), parts, group)
        own.update({name: _as_complex(value) for name, value in parts.items()})

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        """Update a parameter from its gradient; subclasses define this."""
        raise NotImplementedError(f"{type(self).__name__} must define step()")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop all gradients, or set them to zero in place."""
        for group in self.param_groups:
            if set_to_none:
                _gt.forget_gradients(group["params"])
                continue
            for parameter in group["params"]:
                forget_grad(parameter, set_to_none)

    # States.

    def state_dict(self) -> dict[str, Any]:
        """Return all options and the state of each parameter, in PyTorch's layout."""
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self)
        places: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                places.setdefault(id(parameter), len(places))
            indices = [places[id(parameter)] for parameter in group["params"]]
            options = {name: value for name, value in group.items() if name != "params"}
            groups.append({**options, "params": indices})
        kept = {
            places[id(parameter)] if isinstance(parameter, Tensor) else parameter: self._given(own)
            for parameter, own in self.state.items()
            if own
        }
        state: dict[str, Any] = {"state": kept, "param_groups": groups}
        for hook in list(self._state_dict_post_hooks.values()):
            changed = hook(self, state)
            state = state if changed is None else changed
        return state

    def _given(self, own: dict[str, Any]) -> dict[str, Any]:
        """Return a parameter's state as it appears in a state dict."""
        return {
            name: _gt.tensor(float(value)) if name in self._counters else value
            for name, value in own.items()
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of an optimizer with the same parameter groups, also PyTorch's."""
        state_dict = dict(state_dict)
        for hook in list(self._load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        if "param_groups" not in state_dict or "state" not in state_dict:
            raise KeyError(
                f"{type(self).__name__}.load_state_dict: the state has the keys "
                f"{[*state_dict]}, expected 'state' and 'param_groups', as of state_dict()"
            )
        sizes = [len(group["params"]) for group in state_dict["param_groups"]]
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise ValueError(
                f"load_state_dict: the state has groups of {sizes} parameters, "
                f"this optimizer has groups of {own}"
            )
        taken: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        indices = [i for group in state_dict["param_groups"] for i in group["params"]]
        of = dict(zip(indices, self.params, strict=True))
        for index, kept in state_dict["state"].items():
            if index in of:
                parameter = of[index]
                taken[parameter] = {n: self._taken(n, v, parameter) for n, v in kept.items()}
            else:
                taken[index] = copy.deepcopy(kept)
        for group, other in zip(self.param_groups, state_dict["param_groups"], strict=True):
            names = group.get("param_names")
            group.update({n: copy.deepcopy(v) for n, v in other.items() if n != "params"})
            if names is not None:
                group["param_names"] = names
        self.state = taken
        for hook in list(self._load_state_dict_post_hooks.values()):
            hook(self)

    def _taken(self, name: str, value: Any, parameter: Tensor) -> Any:
        """Return a state dict's entry in this optimizer's form: a number, or a copied tensor."""
        if name in self._counters:
            number = float(value)
            return int(number) if name == "step" else number
        if isinstance(value, (list, tuple)):
            return type(value)(self._taken("", item, parameter) for item in value)
        if not hasattr(value, "shape"):
            return value
        if not isinstance(value, Tensor):
            given = value.detach() if hasattr(value, "detach") else value
            value = _gt.tensor_beside(parameter, given)
        value = value.detach().clone()
        return value.to(parameter.dtype) if parameter.is_floating_point() else value

    # Hooks.

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step; it may return new (args, kwargs)."""
        return add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        return add_hook(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) before `state_dict` collects the state."""
        return add_hook(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) on each state dict; it may return another one."""
        return add_hook(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before a state is loaded; it may return another one."""
        return add_hook(self._load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer) after a state was loaded."""
        return add_hook(self._load_state_dict_post_hooks, hook, prepend)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step that calls the optimizer's hooks, and records for schedulers that it ran.

    The step is a transaction: if the computation of a gradient has failed, or the step raises,
    parameters and optimizer state keep their values.
    """

    def called(self: Optimizer, args: Any, kwargs: Any) -> Any:
        if self._step_pre_hooks:
            args, kwargs = _changed(self, args, kwargs)
        result = step(self, *args, **kwargs)
        self._has_stepped = True
        if self._step_post_hooks:
            for hook in list(self._step_post_hooks.values()):
                hook(self, args, kwargs)
        return result

    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._is_recorded:
            return called(self, args, kwargs)
        return _gt.run_step(called, self, args, kwargs)

    return wrapped


def _changed(optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Call the hooks before a step; return its arguments, which the hooks may replace."""
    for hook in list(optimizer._step_pre_hooks.values()):
        changed = hook(optimizer, args, kwargs)
        if changed is not None:
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"{type(optimizer).__name__}.step: a pre-hook must return None or a tuple of "
                    f"(args, kwargs), not {changed!r}"
                )
            args, kwargs = changed
    return args, kwargs


Optimizer.step = _with_hooks(Optimizer.step)  # type: ignore[method-assign]


def _as_real(value: Any) -> Any:
    return gt.view_as_real(value) if isinstance(value, Tensor) else value


def _as_complex(value: Any) -> Any:
    return gt.view_as_complex(value) if isinstance(value, Tensor) else value


def _retains(parameter: Tensor) -> bool:
    return bool(parameter.retains_grad)


def decayed(parameter: Tensor, grad: Tensor, group: Group, decoupled: bool = False) -> Tensor:
    """Return the gradient with weight decay added; if decoupled, shrink the parameter instead."""
    decay = group["weight_decay"]
    if not decay:
        return grad
    if decoupled:
        parameter.mul_(1 - group["lr"] * decay)
        return grad
    return _gt.primitives.mul_add(grad, parameter, decay)
