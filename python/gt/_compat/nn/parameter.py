"""Tensors that modules register as parameters or buffers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from gt import _gt
from gt._arguments import brief
from gt._gt import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self
else:
    Self = Any  # for `typing.get_type_hints`


def _set_grad(parameter: Parameter, grad: Tensor | None) -> None:
    if isinstance(grad, Tensor) and grad.dtype != parameter.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype {grad.dtype.name} to a parameter of "
            f"dtype {parameter.dtype.name}\n  hint: parameter.grad = grad.to(parameter.dtype)"
        )
    Tensor.grad.__set__(parameter, grad)  # type: ignore[attr-defined]


class Parameter(Tensor):
    """A tensor that a module registers as a parameter, whether or not it requires gradients.

    Args:
        data: a tensor, with which it shares memory, or an array or list.
        requires_grad: whether it requires gradients.

    >>> gt.nn.Parameter(gt.zeros(2))
    Parameter containing:
    tensor([0., 0.], dtype=float32, requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        """Create a parameter, detached from the history of `data`."""
        if data is None:
            data = _gt.empty(0)
        elif not isinstance(data, Tensor):
            data = _gt.tensor(data)
        # NumPy's bools are equal to Python's.
        if isinstance(requires_grad, Tensor) or requires_grad not in (True, False):
            raise TypeError(f"requires_grad is {brief(requires_grad)}, expected True or False")
        if requires_grad and not (data.dtype.is_floating_point or data.dtype.is_complex):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients, this one "
                f"is {data.dtype.name}\n  hint: requires_grad=False"
            )
        parameter = super().__new__(cls, data)
        parameter.requires_grad_(requires_grad)
        signal, _ = _gt.signal_current()
        if signal is not None:
            # Values loaded into the parameter later are sharded as this signal configures.
            parameter._signal = signal
        return parameter

    #: The innermost signal that the parameter was created under.
    _signal: str | None = None

    if not TYPE_CHECKING:
        grad = property(
            Tensor.grad.__get__,
            _set_grad,
            doc="The gradient accumulated by backward passes, in the parameter's dtype, or None.",
        )

    def __init__(self, data: Any = None, requires_grad: bool = True):
        super().__init__()

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self)(super().__deepcopy__(memo), self.requires_grad)
        memo[id(self)] = copied
        if self.grad is not None:
            copied.grad = copy.deepcopy(self.grad, memo)
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned as an attribute.

    Args:
        data: a tensor, with which it shares memory, or an array or list.
        persistent: whether it is part of the module's `state_dict`.
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Self:
        """Create a buffer."""
        if data is None:
            data = _gt.empty(0)
        elif not isinstance(data, Tensor):
            data = _gt.tensor(data)
        buffer = super().__new__(cls, data)
        buffer.persistent = persistent
        return buffer

    def __init__(self, data: Any = None, *, persistent: bool = True):
        super().__init__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self)(super().__deepcopy__(memo), persistent=self.persistent)
        memo[id(self)] = copied
        return copied


def is_parameter(value: Any) -> bool:
    """Return whether a module registers an attribute's value as a parameter.

    This includes plain leaf tensors that require gradients.
    """
    if isinstance(value, Parameter):
        return True
    return (
        isinstance(value, Tensor)
        and not isinstance(value, Buffer)
        and value.requires_grad
        and value.is_leaf
    )
