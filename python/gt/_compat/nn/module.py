"""The base class of all modules."""

from __future__ import annotations

import copy
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from gt._device import check_index, check_target
from gt._gt import Tensor
from gt._lines import warn
from gt.autograd import no_grad
from gt.ops.convert import wanted_dtype

from .calling import Calling
from .compilable import Compilable
from .parameter import Buffer, Parameter, is_parameter
from .states import States
from .tree import ParameterTable, Tree

if TYPE_CHECKING:
    from typing_extensions import Self
else:
    Self = Any  # for `typing.get_type_hints`

_HOOK_TABLES = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Module(Tree, States, Compilable, Calling):
    """The base class of all neural network modules.

    Parameters, buffers and modules assigned as attributes are registered automatically. As in
    PyTorch, those inside plain lists and dicts are not: use `gt.nn.ModuleList`, `ModuleDict`,
    `ParameterList` or `ParameterDict`. A leaf tensor created with `requires_grad=True` counts as a
    parameter. A model may also assign a list of parameters to `self._parameters`.
    """

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        set_ = super().__setattr__
        set_("training", True)
        set_("_parameters", ParameterTable())
        set_("_buffers", {})
        set_("_non_persistent_buffers_set", set())
        set_("_modules", {})
        for table in _HOOK_TABLES:
            set_(table, OrderedDict())

    # Attributes.

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__
        parameters = attributes.get("_parameters")
        if parameters is not None and name in parameters:
            return parameters[name]
        for table in ("_buffers", "_modules"):
            values = attributes.get(table)
            if values is not None and name in values:
                return values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        parameters = attributes.get("_parameters")
        if parameters is None:
            if isinstance(value, (Tensor, Module)):
                raise AttributeError(
                    f"{type(self).__name__}.{name}: call super().__init__() before tensors or "
                    "modules are assigned"
                )
            super().__setattr__(name, value)
        elif isinstance(value, Module):
            self._forget(name, "_modules")
            self._modules[name] = value
        elif isinstance(value, Buffer) or name in self._buffers:
            self._set_buffer(name, value)
        elif is_parameter(value):
            self.register_parameter(name, value)
        elif name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as parameter '{name}' (gt.nn.Parameter or "
                    "None expected)\n  hint: gt.nn.Parameter(...), or copy_() its values under "
                    "gt.no_grad()"
                )
            parameters[name] = None
        elif name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as child module '{name}' (gt.nn.Module or "
                    "None expected)"
                )
            self._modules[name] = None
        elif name == "_parameters" and isinstance(value, (list, tuple)):
            super().__setattr__(name, ParameterTable().listed(value, keep=parameters))
        else:
            super().__setattr__(name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_kind(value)}' as buffer '{name}' (gt.nn.Buffer, gt.Tensor or "
                "None expected)"
            )
        if name in self._buffers:
            self._buffers[name] = value
        else:
            self._forget(name)
            self.register_buffer(name, value, getattr(value, "persistent", True))

    def _forget(self, name: str, kept: str = "") -> None:
        """Remove an attribute from the instance and from every table except `kept`."""
        for table in ("_parameters", "_buffers", "_modules"):
            if table != kept:
                self.__dict__[table].pop(name, None)
        if kept != "_buffers":
            self._non_persistent_buffers_set.discard(name)
        self.__dict__.pop(name, None)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        own = [*self._parameters, *self._buffers, *self._modules]
        return sorted({*super().__dir__(), *own})

    def _check_name(self, kind: str, name: Any, table: dict[str, Any]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before super().__init__() is called")
        if not isinstance(name, str):
            raise TypeError(f"a {kind}'s name must be a string, not {_kind(name)}")
        if "." in name or not name:
            raise KeyError(f"a {kind}'s name is {name!r}, expected a name without dots")
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not trained; part of `state_dict` if `persistent`."""
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{_kind(tensor)}' as buffer '{name}' (tensor or None)")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Register a parameter under a name, or None to reserve the name."""
        if "_parameters" in self.__dict__ and name not in self._parameters:
            self._forget(name, "_parameters") if name in self.__dict__ else None
        self._check_name("parameter", name, self._parameters)
        if param is not None and not is_parameter(param):
            raise TypeError(
                f"cannot assign '{_kind(param)}' object to parameter '{name}' (gt.nn.Parameter or "
                "None required)"
            )
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a child module under a name, or None to reserve the name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_kind(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module

    register_module = add_module

    # Modes and conversions.

    def train(self, mode: bool = True) -> Self:
        """Set this module and all its descendants to training or evaluation mode."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode is {mode!r}, expected True or False")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Set this module and all its descendants to evaluation mode."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            forget_grad(parameter, set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters require gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Call a function with every descendant of this module, and then with this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by the function's result for it."""
        for child in self.children() if recurse else ():
            child._apply(fn)
        for _, parameter in self._own_parameters():
            with no_grad():
                gradient, parameter.data = parameter.grad, fn(parameter.detach())
                if gradient is not None:
                    parameter.grad = None
                    parameter.grad = fn(gradient)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                with no_grad():
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating point and complex parameters and buffers to another such dtype.

        Accepts PyTorch's forms: a dtype, a device (every device is the cluster), both, or a tensor
        whose dtype is used.
        """
        wanted, _ = wanted_dtype(args, kwargs)
        if wanted is None:
            return self
        if not (wanted.is_floating_point or wanted.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={wanted}"
            )
        return self._apply(lambda t: t.to(wanted) if _is_inexact(t) else t)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to another dtype."""
        return self._apply(lambda t: cast("Tensor", t.type(dst_type)))

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._to_float("float32")

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._to_float("float64")

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._to_float("float16")

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16."""
        return self._to_float("bfloat16")

    def _to_float(self, name: str) -> Self:
        return self._apply(lambda t: t.to(name) if t.dtype.is_floating_point else t)

    def cpu(self) -> Self:
        """Return the module itself: the dispatcher decides which worker computes."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Return the module itself: the dispatcher decides which worker computes."""
        if device is not None:
            check_index(device)
        return self

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Return the module itself: its tensors are already on the cluster."""
        check_target(device)
        return self

    def share_memory(self) -> Self:
        """Return the module itself, and warn: threads share its tensors, processes copy them."""
        warn("share_memory: processes get copies; only threads share")
        return self

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the module's repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = []
        for name, child in self._all_children():
            body = repr(child).replace("\n", "\n  ")
            children.append(f"({name}): {body}")
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join([*lines, *children]) + "\n)"

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        for name, value in Compilable.__getstate__(self).items():
            # The copy has its own hook tables; the hook functions are shared.
            is_table = name in _HOOK_TABLES
            copied.__dict__[name] = OrderedDict(value) if is_table else copy.deepcopy(value, memo)
        return copied


def forget_grad(parameter: Tensor, set_to_none: bool) -> None:
    """Clear the gradient of a parameter, or set it to zero."""
    if set_to_none or parameter.grad is None:
        parameter.grad = None
    else:
        parameter.grad.zero_()


def _kind(value: Any) -> str:
    """Return the name of a value's type for error messages."""
    return f"gt.{type(value).__name__}" if isinstance(value, Tensor) else type(value).__name__


def _is_inexact(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


# `typing.get_type_hints` looks up the annotations of methods in the modules that define them.
for _base in (Tree, States, Compilable, Calling):
    for _named in (Module, Parameter):
        vars(sys.modules[_base.__module__]).setdefault(_named.__name__, _named)
