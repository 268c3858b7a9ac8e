"""Functions whose gradient is zero everywhere, such as rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gt._gt import Tensor, zeros_like
from gt.autograd import Function


def flat(function: Callable[..., Tensor], *operands: Any) -> Tensor:
    """Call a function, with gradients of zero for its operands."""
    return _Flat.apply(function, *operands)


class _Flat(Function):
    """A function whose operands have gradients of zero."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *operands: Any) -> Tensor:
        ctx.save_for_backward(*(one if isinstance(one, Tensor) else None for one in operands))
        return function(*operands)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(one if one is None else zeros_like(one) for one in ctx.saved_tensors)
