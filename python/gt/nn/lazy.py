"""Layers that find the sizes of their parameters at the first input."""

from __future__ import annotations

import itertools
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.parameter import Buffer, Parameter


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet."""

    cls_to_become: type[Tensor] = Tensor

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a plain parameter or buffer of a shape, the same object; values are not set."""
        trained = self.requires_grad  # type: ignore[attr-defined]
        own = self.dtype if dtype is None else dtype  # type: ignore[attr-defined]
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        with gt.no_grad():
            self._become(gt.empty(tuple(shape), device=device, dtype=own))  # type: ignore[attr-defined]
            self.requires_grad_(trained)  # type: ignore[attr-defined]

    @property
    def shape(self):
        """Raise: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer\n"
            "  hint: call the module with an input first, which tells the shapes; a state with "
            "uninitialized parameters does not load into a module that has shapes"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _refuse(name: str) -> None:
    """Make a method raise what PyTorch does for a tensor without a shape."""

    def refused(self: Any, *_args: Any, **_kwargs: Any) -> Any:
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {name}\n"
            "  hint: call the module with an input first, which initializes the parameter"
        )

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = "Raise: there is no shape yet."
    setattr(UninitializedTensorMixin, name, refused)


for _name in ("numel", "nelement", "dim", "ndimension", "stride", "tolist", "item", "__len__"):
    _refuse(_name)


def is_lazy(param: Any) -> bool:
    """Say whether this is a parameter or buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; `materialize(shape)` makes it a `Parameter`.

    Args:
        requires_grad: whether it is trained.
        device: where it will be; all are the cluster.
        dtype: the dtype it will have.
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        """Make one."""
        return super().__new__(cls, gt.empty(0, device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()

    def __deepcopy__(self, memo: dict) -> UninitializedParameter:
        copied = memo[id(self)] = type(self)(self.requires_grad, dtype=self.dtype)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self), (self.requires_grad, None, self.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; `materialize(shape)` makes it a `Buffer`.

    Args:
        requires_grad: whether it requires gradients.
        device: where it will be; all are the cluster.
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
    ):
        """Make one."""
        buffer = super().__new__(cls, gt.empty(0, device=device, dtype=dtype))
        buffer.persistent = persistent
        return buffer.requires_grad_(requires_grad)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def to(self, *args: Any, **kwargs: Any) -> UninitializedBuffer:
        """Give one that will have another dtype."""
        dtype = super().to(*args, **kwargs).dtype
        return type(self)(self.requires_grad, None, dtype, self.persistent)

    def __deepcopy__(self, memo: dict) -> UninitializedBuffer:
        copied = memo[id(self)] = type(self)(self.requires_grad, None, self.dtype, self.persistent)
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self), (self.requires_grad, None, self.dtype, self.persistent)


class LazyModuleMixin:
    """Makes a layer find the shapes of its parameters at the first input.

    A subclass stands before the layer it is the lazy form of, makes `UninitializedParameter`s,
    and defines `initialize_parameters`. The first forward makes the module one of the class
    `cls_to_become`; a state that is loaded before gives the parameters their shapes.
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        register = self._register_load_state_dict_pre_hook  # type: ignore[attr-defined]
        self._load_hook = register(_take_shapes, with_module=True)
        self._initialize_hook = self.register_forward_pre_hook(  # type: ignore[attr-defined]
            _infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Put tensors into a state; those without a shape as they are."""
        for name, tensor in self._own_state().items():  # type: ignore[attr-defined]
            kept = keep_vars or is_lazy(tensor)
            destination[prefix + name] = tensor if kept else tensor.detach()

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters shapes and first values by an input; subclasses define it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Say whether there are parameters or buffers without a shape."""
        return any(is_lazy(tensor) for _, tensor in _tensors(self))


def _tensors(module: Any) -> itertools.chain:
    return itertools.chain(module._parameters.items(), module._buffers.items())


def _take_shapes(module: Any, state: dict, prefix: str, *_: Any) -> None:
    """Give parameters the shapes that a state tells; take those of the state that have none."""
    for name, tensor in _tensors(module):
        value = state.get(prefix + name)
        if is_lazy(tensor) and value is not None and not is_lazy(value):
            tensor.materialize(value.shape)


def _infer_parameters(module: Any, args: tuple, kwargs: dict) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
