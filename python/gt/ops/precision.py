"""The dtypes in which functions of floats are computed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor, dtype, parse_dtype
from gt.engines.engine import Kind
from gt.engines.promotion import promote
from gt.ops.annotations import P


def kind(operand: Any) -> Kind | type:
    """Return an operand's kind for promotion: a tensor's kind, or the type of a number."""
    if isinstance(operand, Tensor):
        return Kind(operand.dtype.name, operand.ndim > 0)
    return type(operand)


def common_dtype(*operands: Any) -> dtype:
    """Return the dtype that tensors and numbers are promoted to; other operands do not count."""
    counting = tuple(one for one in operands if isinstance(one, Tensor | int | float))
    found = parse_dtype(promote(tuple(kind(one) for one in counting)))
    tensors = (one for one in counting if isinstance(one, Tensor))
    # float32 is the result only if a tensor is a float; a Python float leads to the default dtype.
    if found is gt.float32 and not any(one.dtype.is_floating_point for one in tensors):
        return gt.get_default_dtype()
    return found


def float_dtype(*operands: Any) -> dtype:
    """Return the dtype of a function of floats: the operands'; for integers the default dtype."""
    found = common_dtype(*operands)
    return found if found.is_floating_point or found.is_complex else gt.get_default_dtype()


def in_floats(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Cast the operands of a function to one float dtype, as PyTorch's kernels do.

    16-bit floats are computed in float32, and the result is rounded once.
    """

    @functools.wraps(function)
    def promoted(*args: Any, **kwargs: Any) -> Tensor:
        operands = (*args, *kwargs.values())
        result = _dtype_of_all(operands)
        if result is not None:
            return function(*args, **kwargs)._cast(result)
        result = float_dtype(*operands)
        wide = gt.float32 if result.itemsize == 2 else result
        args = tuple(_cast(one, wide) for one in args)
        kwargs = {name: _cast(one, wide) for name, one in kwargs.items()}
        return function(*args, **kwargs)._cast(result)

    return promoted


def _dtype_of_all(operands: tuple[Any, ...]) -> dtype | None:
    """Return float32 or float64 if all tensors have that dtype and no number is complex."""
    dtypes = [one.dtype for one in operands if isinstance(one, Tensor)]
    if not dtypes or any(isinstance(one, complex) for one in operands):
        return None
    first = dtypes[0]
    same = all(one is first for one in dtypes)
    return first if same and (first is gt.float32 or first is gt.float64) else None


def _cast(operand: Any, wanted: dtype) -> Any:
    return operand._cast(wanted) if isinstance(operand, Tensor) else operand
