"""The base class of all modules, and containers of modules."""

from collections import OrderedDict
from collections.abc import Iterator

from gt import _gt
from gt._gt import Tensor


def Parameter(data, requires_grad: bool = True) -> Tensor:
    """Make a tensor that a module counts among its parameters."""
    if not isinstance(data, Tensor):
        data = _gt.tensor(data)
    parameter = data.detach()
    parameter.requires_grad_(requires_grad)
    return parameter


class Module:
    """Something with parameters that computes.

    Tensors that require gradients and modules, assigned as attributes (or standing in lists and
    dicts of them), are found by themselves. A model may also fill `self._parameters` with a list.
    """

    def __init__(self):
        self.training = True
        self._parameters: list[Tensor] = []
        self._buffers: dict[str, Tensor] = {}

    def forward(self, *args, **kwargs):
        """Compute the module's result; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def __call__(self, *args, **kwargs):
        """Compute the module's result."""
        return self.forward(*args, **kwargs)

    def register_buffer(self, name: str, tensor: Tensor) -> None:
        """Keep a tensor that is saved with the module but not trained."""
        self._buffers[name] = tensor
        setattr(self, name, tensor)

    def children(self) -> Iterator["Module"]:
        """Yield the modules this one is made of."""
        for _, child in self.named_children():
            yield child

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yield the modules this one is made of, with their names."""
        for name, value in self.__dict__.items():
            yield from _modules_in(name, value)

    def modules(self) -> Iterator["Module"]:
        """Yield this module and all below it."""
        yield self
        for child in self.children():
            yield from child.modules()

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yield each parameter once, with its name: `fc1.weight`."""
        seen: set[int] = set()
        for name, parameter in self._all_parameters(prefix):
            if hash(parameter) not in seen:
                seen.add(hash(parameter))
                yield name, parameter

    def _all_parameters(self, prefix: str) -> Iterator[tuple[str, Tensor]]:
        for name, value in self.__dict__.items():
            if name not in ("_parameters", "_buffers"):
                for key, tensor in _tensors_in(name, value):
                    if tensor.requires_grad and tensor.is_leaf:
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
        """Yield what is saved with the module but not trained."""
        for name in self._buffers:
            yield prefix + name, getattr(self, name)
        for name, child in self.named_children():
            yield from child.named_buffers(f"{prefix}{name}.")

    def state_dict(self) -> "OrderedDict[str, Tensor]":
        """Give all parameters and buffers by name, without their history."""
        state = OrderedDict()
        for name, tensor in [*self.named_parameters(), *self.named_buffers()]:
            state[name] = tensor.detach()
        return state

    def load_state_dict(self, state: dict, strict: bool = True) -> None:
        """Take the values of a state dict: tensors, or arrays such as PyTorch's.

        With `strict`, names must match exactly; shapes must always match.
        """
        own = OrderedDict([*self.named_parameters(), *self.named_buffers()])
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        if strict and (missing or unexpected):
            raise KeyError(
                f"load_state_dict: missing {missing or 'nothing'}, "
                f"unexpected {unexpected or 'nothing'}\n  hint: strict=False takes what fits"
            )
        values = {}
        for name in (name for name in own if name in state):
            value = state[name]
            if not isinstance(value, Tensor):
                value = value.detach() if hasattr(value, "detach") else value
                value = _gt.tensor(value)
            if value.shape != own[name].shape:
                raise ValueError(
                    f"load_state_dict: '{name}' has shape {value.shape}, expected {own[name].shape}"
                )
            values[name] = value
        for name, value in values.items():
            own[name].data = value

    def train(self, mode: bool = True) -> "Module":
        """Set this module and all below it to training, or to evaluation."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        """Set this module and all below it to evaluation."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.grad = None

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

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]

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

    def __iter__(self):
        return self.children()
