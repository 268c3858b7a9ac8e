"""The base class of all modules, and containers of modules."""

import copy
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator

from gt import _gt
from gt._gt import Tensor
from gt.autograd import no_grad

#: Tensors that are parameters, whether they are trained at the moment or not, by identity.
_PARAMETERS: dict[int, weakref.ref] = {}


def _remember(tensor: Tensor) -> None:
    key = id(tensor)
    if key not in _PARAMETERS:
        _PARAMETERS[key] = weakref.ref(tensor, lambda _: _PARAMETERS.pop(key, None))


def _is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor is trained, or was when a module took it in."""
    if tensor.requires_grad and tensor.is_leaf:
        _remember(tensor)
    return id(tensor) in _PARAMETERS


class _ParameterType(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor) and _is_parameter(value)


class Parameter(metaclass=_ParameterType):
    """A tensor that a module counts among its parameters, even while it is not trained."""

    def __new__(cls, data, requires_grad: bool = True) -> Tensor:  # type: ignore[misc]
        """Make one from a tensor, array or list."""
        if not isinstance(data, Tensor):
            data = _gt.tensor(data)
        parameter = data.detach()
        parameter.requires_grad_(requires_grad)
        _remember(parameter)
        return parameter


class ForwardHook:
    """Takes a module's hook away again."""

    def __init__(self, module: "Module"):
        self._module = weakref.ref(module)

    def remove(self) -> None:
        """Call the hook no more."""
        module = self._module()
        if module is not None:
            module._hooks.pop(self, None)

    def __enter__(self) -> "ForwardHook":
        return self

    def __exit__(self, *exception) -> None:
        self.remove()


class Module:
    """Something with parameters that computes.

    Tensors that require gradients and modules, assigned as attributes (or standing in lists and
    dicts of them), are found by themselves. A model may also fill `self._parameters` with a list.
    """

    def __init__(self):
        self.training = True
        self._parameters: list[Tensor] = []
        #: By name, whether it is saved.
        self._buffers: dict[str, bool] = {}
        self._hooks: dict[ForwardHook, Callable] = {}

    def __setattr__(self, name: str, value) -> None:
        if isinstance(value, (Tensor, Module)):
            if "_parameters" not in self.__dict__:
                raise AttributeError(
                    f"{type(self).__name__}.{name}: call super().__init__() before tensors or "
                    "modules are assigned"
                )
            if isinstance(value, Tensor):
                _is_parameter(value)
        super().__setattr__(name, value)

    def forward(self, *args, **kwargs):
        """Compute the module's result; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def __call__(self, *args, **kwargs):
        """Compute the module's result."""
        output = self.forward(*args, **kwargs)
        hooks = self.__dict__.get("_hooks")
        if hooks:
            for hook in list(hooks.values()):
                changed = hook(self, args, output)
                output = output if changed is None else changed
        return output

    def register_forward_hook(self, hook: Callable) -> "ForwardHook":
        """Call hook(module, args, output) after each forward.

        What it returns, unless it is None, takes the output's place. `remove()` of the handle
        that is returned, or the end of a `with` block over it, ends that.
        """
        handle = ForwardHook(self)
        self._hooks[handle] = hook
        return handle

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor that is not trained; saved with the module unless told otherwise."""
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"a buffer's name is {name!r}, expected a name without dots")
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"there is an attribute '{name}' already")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"a buffer must be a tensor or None, not {type(tensor).__name__}")
        self._buffers[name] = persistent
        setattr(self, name, tensor)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__.get("_buffers", {}).pop(name, None)

    def register_parameter(self, name: str, parameter: Tensor | None) -> None:
        """Keep a tensor that is trained, or None in its place."""
        setattr(self, name, parameter)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Keep a module under a name."""
        setattr(self, name, module)

    def __deepcopy__(self, memo: dict) -> "Module":
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        for name, value in self.__dict__.items():
            if name == "_hooks":
                copied._hooks = {ForwardHook(copied): hook for hook in value.values()}
                continue
            kept = copied.__dict__[name] = copy.deepcopy(value, memo)
            # Frozen parameters are parameters in the copy, too.
            for (_, ours), (_, theirs) in zip(
                _tensors_in(name, value), _tensors_in(name, kept), strict=True
            ):
                if _is_parameter(ours):
                    _remember(theirs)
        return copied

    def children(self) -> Iterator["Module"]:
        """Yield the modules this one is made of."""
        for _, child in self.named_children():
            yield child

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yield the modules this one is made of, with their names."""
        for name, value in self.__dict__.items():
            if name != "_hooks":
                yield from _modules_in(name, value)

    def modules(self) -> Iterator["Module"]:
        """Yield this module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """Yield this module and all below it, with their names."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def apply(self, function: Callable[["Module"], object]) -> "Module":
        """Call a function with all modules below this one, and then with this one."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def to(self, dtype) -> "Module":
        """Turn float parameters and buffers into another float dtype."""
        for tensor in [*self.parameters(), *(buffer for _, buffer in self.named_buffers())]:
            if tensor.dtype.is_floating_point:
                tensor.data = tensor.detach().to(dtype)
        return self

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yield each parameter once, with its name: `fc1.weight`."""
        seen: set[int] = set()
        for name, parameter in self._all_parameters(prefix):
            if hash(parameter) not in seen:
                seen.add(hash(parameter))
                yield name, parameter

    def _all_parameters(self, prefix: str) -> Iterator[tuple[str, Tensor]]:
        for name, value in self.__dict__.items():
            if name not in ("_parameters", "_buffers", "_hooks"):
                for key, tensor in _tensors_in(name, value):
                    if _is_parameter(tensor) and key not in self._buffers:
                        yield prefix + key, tensor
        for name, child in self.named_children():
            yield from child._all_parameters(f"{prefix}{name}.")
        # A list that the model filled itself comes last: what has a name keeps it.
        for index, parameter in enumerate(self._parameters):
            yield f"{prefix}_parameters.{index}", parameter

    def parameters(self) -> list[Tensor]:
        """List each parameter once."""
        return [parameter for _, parameter in self.named_parameters()]

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yield what belongs to the module but is not trained."""
        seen: set[int] = set()
        for name, buffer, _ in self._all_buffers(prefix):
            if id(buffer) not in seen:
                seen.add(id(buffer))
                yield name, buffer

    def _all_buffers(self, prefix: str) -> Iterator[tuple[str, Tensor, bool]]:
        for name, persistent in self._buffers.items():
            buffer = getattr(self, name)
            if buffer is not None:
                yield prefix + name, buffer, persistent
        for name, child in self.named_children():
            yield from child._all_buffers(f"{prefix}{name}.")

    def state_dict(self) -> "OrderedDict[str, Tensor]":
        """Give all parameters and buffers by name, without their history."""
        return OrderedDict((name, tensor.detach()) for name, tensor in self._state().items())

    def _state(self) -> "OrderedDict[str, Tensor]":
        """All parameters, a shared one under each of its names, and buffers."""
        own = OrderedDict(self._all_parameters(""))
        # A list that the model filled itself only repeats what has a name.
        named = {id(tensor) for name, tensor in own.items() if "_parameters." not in name}
        for name in [name for name in own if "_parameters." in name]:
            if id(own[name]) in named:
                del own[name]
        own.update((name, buffer) for name, buffer, saved in self._all_buffers("") if saved)
        return own

    def load_state_dict(self, state: dict, strict: bool = True) -> None:
        """Take the values of a state dict: tensors, or arrays such as PyTorch's.

        With `strict`, names must match exactly; shapes must always match.
        """
        own = self._state()
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        if strict and (missing or unexpected):
            raise KeyError(
                f"load_state_dict: missing {missing or 'nothing'}, "
                f"unexpected {unexpected or 'nothing'}; strict=False takes what fits"
            )
        values = {}
        for name in (name for name in own if name in state):
            value = state[name]
            if not isinstance(value, Tensor):
                value = value.detach() if hasattr(value, "detach") else value
                value = _gt.tensor_beside(own[name], value)
            if value.shape != own[name].shape:
                raise ValueError(
                    f"load_state_dict: '{name}' has shape {value.shape}, expected {own[name].shape}"
                )
            values[name] = value
        for name, value in values.items():
            with no_grad():
                own[name].copy_(value)

    def train(self, mode: bool = True) -> "Module":
        """Set this module and all below it to training, or to evaluation."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Set this module and all below it to evaluation."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            forget_grad(parameter, set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> "Module":
        """Train all parameters, or none."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def extra_repr(self) -> str:
        """Say what stands between the brackets when the module prints."""
        return ""

    def __repr__(self) -> str:
        lines = []
        for name, child in self.named_children():
            body = repr(child).replace("\n", "\n  ")
            lines.append(f"  ({name}): {body}")
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"


def forget_grad(parameter: Tensor, set_to_none: bool) -> None:
    """Forget the gradient of a parameter, or set it to zero."""
    if set_to_none or parameter.grad is None:
        parameter.grad = None
    else:
        parameter.grad.zero_()


def _modules_in(name: str, value) -> Iterator[tuple[str, Module]]:
    if isinstance(value, Module):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _modules_in(f"{name}.{index}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _modules_in(f"{name}.{key}", item)


def _tensors_in(name: str, value) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _tensors_in(f"{name}.{index}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors_in(f"{name}.{key}", item)


class Sequential(Module):
    """Modules one after another; named 0, 1, 2, ... as PyTorch does."""

    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            items = list(modules[0].items())
        else:
            items = [(str(index), module) for index, module in enumerate(modules)]
        for name, module in items:
            if not isinstance(module, Module):
                raise TypeError(f"Sequential takes modules, not {type(module).__name__}")
            setattr(self, name, module)

    def forward(self, x):
        """Pass the input through all modules in order."""
        for module in self.children():
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(list(self.children()))

    def __getitem__(self, index: int | slice) -> Module:
        found = list(self.children())[index]
        return Sequential(*found) if isinstance(found, list) else found

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, [name for name, _ in self.named_children()][index], module)

    def append(self, module: Module) -> "Sequential":
        """Put a module at the end."""
        setattr(self, str(len(self)), module)
        return self

    def __iter__(self):
        return self.children()


class ModuleList(Module):
    """A list of modules whose parameters are found."""

    def __init__(self, modules=()):
        super().__init__()
        for index, module in enumerate(modules):
            setattr(self, str(index), module)

    def append(self, module: Module) -> "ModuleList":
        """Put a module at the end."""
        setattr(self, str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(list(self.children()))

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(range(len(self))[index]), module)

    def __iter__(self):
        return self.children()
