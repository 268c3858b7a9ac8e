"""Layers that infer the shapes of their parameters from the first input."""

from __future__ import annotations

import itertools
from typing import Any

import gt
from gt._gt import Tensor

from .parameter import Buffer, Parameter


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet."""

    cls_to_become: type[Tensor] = Tensor

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Turn this object into a plain parameter or buffer of a shape, uninitialized."""
        trained = self.requires_grad  # type: ignore[attr-defined]
        own = self.dtype if dtype is None else dtype  # type: ignore[attr-defined]
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        with gt.no_grad():
            self._become(gt.empty(tuple(shape), device=device, dtype=own))  # type: ignore[attr-defined]
            self.requires_grad_(trained)  # type: ignore[attr-defined]

    @property
    def shape(self) -> Any:
        """Raise RuntimeError: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer\n"
            "  hint: call the module with an input first, to infer the shapes; a state with "
            "uninitialized parameters does not load into a module that has shapes"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _refuse(name: str) -> None:
    """Make a method raise PyTorch's error for a tensor without a shape."""

    def refused(self: Any, *_args: Any, **_kwargs: Any) -> Any:
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {name}\n"
            "  hint: call the module with an input first, which initializes the parameter"
        )

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = "Raise ValueError: the shape is not known yet."
    setattr(UninitializedTensorMixin, name, refused)


for _name in ("numel", "nelement", "dim", "ndimension", "stride", "tolist", "item", "__len__"):
    _refuse(_name)


def is_lazy(param: Any) -> bool:
    """Return whether a value is a parameter or buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; `materialize(shape)` makes it a `Parameter`.

    Args:
        requires_grad: whether it requires gradients.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the dtype it will have.
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """Create a parameter without a shape."""
        return super().__new__(cls, gt.empty(0, device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        copied = memo[id(self)] = type(self)(self.requires_grad, dtype=self.dtype)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, None, self.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; `materialize(shape)` makes it a `Buffer`.

    Args:
        requires_grad: whether it requires gradients.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the dtype it will have.
        persistent: whether it is part of the module's state.
    """

    cls_to_become = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        """Create a buffer without a shape."""
        buffer = super().__new__(cls, gt.empty(0, device=device, dtype=dtype))
        buffer.persistent = persistent
        return buffer.requires_grad_(requires_grad)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def to(self, *args: Any, **kwargs: Any) -> UninitializedBuffer:
        """Return an uninitialized buffer of another dtype."""
        dtype = super().to(*args, **kwargs).dtype
        return type(self)(self.requires_grad, None, dtype, self.persistent)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        copied = memo[id(self)] = type(self)(self.requires_grad, None, self.dtype, self.persistent)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, None, self.dtype, self.persistent)


class LazyModuleMixin:
    """A mixin for layers that infer the shapes of their parameters from the first input.

    A subclass lists it before the layer of which it is the lazy form, creates
    `UninitializedParameter`s and defines `initialize_parameters`. The first forward changes the
    module's class to `cls_to_become`. A state that is loaded before that also determines the
    shapes.
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        register = self._register_load_state_dict_pre_hook  # type: ignore[attr-defined]
        self._load_hook = register(_take_shapes, with_module=True)
        self._initialize_hook = self.register_forward_pre_hook(  # type: ignore[attr-defined]
            _infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Add the module's own tensors to a state; those without a shape are not detached."""
        for name, tensor in self._own_state().items():  # type: ignore[attr-defined]
            kept = keep_vars or is_lazy(tensor)
            destination[prefix + name] = tensor if kept else tensor.detach()

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Infer shapes from an input and initialize the parameters; subclasses define it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Return whether the module has parameters or buffers without a shape."""
        return any(is_lazy(tensor) for _, tensor in _tensors(self))


def _tensors(module: Any) -> itertools.chain[Any]:
    return itertools.chain(module._parameters.items(), module._buffers.items())


def _take_shapes(module: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Materialize lazy tensors in the shapes of a state's values, where those have shapes."""
    for name, tensor in _tensors(module):
        value = state.get(prefix + name)
        if is_lazy(tensor) and value is not None and not is_lazy(value):
            tensor.materialize(value.shape)


def _infer_parameters(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
