"""`Variable`, the name of tensors with gradients before PyTorch 0.4."""

from __future__ import annotations

from gt._arguments import check_bool
from gt._gt import Tensor


class _VariableType(type):
    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data has to be a tensor, but got {type(data).__name__}")
        check_bool(requires_grad=requires_grad)
        return data.detach().requires_grad_(requires_grad)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """A tensor that shares the memory of another one, and may require gradients.

    >>> gt.autograd.Variable(gt.ones(1), requires_grad=True).requires_grad
    True
    """
