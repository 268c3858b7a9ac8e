"""Helpers of `gt.nn.functional`: precision, in-place results and reductions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor, dtype, has_halves, tensor_beside
from gt._lines import warn
from gt.ops.annotations import P, T
from gt.ops.registry import COMPOSITES, function

#: The namespace that the functions are registered in.
NN = "gt.nn.functional"


def need_floats(name: str, input: Tensor) -> None:
    """Raise TypeError for an input that does not hold floats."""
    if not input.dtype.is_floating_point:
        raise TypeError(
            f"{name}: input must hold floats, this is {input.dtype.name}\n  hint: input.float()"
        )


def wide(name: str, input: Tensor, complex: bool = False) -> Tensor:
    """Return floats in the dtype to compute in: float32 for 16-bit floats.

    With `complex`, complex numbers are accepted, too, and returned unchanged.
    """
    if complex and input.dtype.is_complex:
        return input
    need_floats(name, input)
    return input.float() if input.dtype.itemsize == 2 else input


def given(input: Tensor, result: Tensor, inplace: bool, name: str) -> Tensor:
    """Return a result in the input's dtype; with `inplace`, store it in the input."""
    result = result._cast(input.dtype)
    return input._assign(result, name) if inplace else result


def check_slope(name: str, input: Tensor, slope: float, inplace: bool) -> None:
    """Raise if backward could not determine from an in-place result which values were negative."""
    if inplace and slope < 0 and input.requires_grad and gt.is_grad_enabled():
        raise RuntimeError(
            f"{name}: a negative slope, {slope}, has no gradient in place: the result does not "
            f"show which values were negative\n  hint: use {name.rstrip('_')}"
        )


def in_float32(of: Callable[P, T]) -> Callable[P, T]:
    """Return a function that computes 16-bit floats in float32 and rounds only its result."""

    @functools.wraps(of)
    def widened(*args: Any, **kwargs: Any) -> Any:
        if not has_halves(args, kwargs):
            return of(*args, **kwargs)
        dtypes = {
            value.dtype
            for value in (*args, *kwargs.values())
            if isinstance(value, Tensor) and value.dtype.is_floating_point
        }
        result = of(*map(_widened, args), **{k: _widened(v) for k, v in kwargs.items()})
        return _cast(result, dtypes.pop()) if len(dtypes) == 1 else result

    return widened


def _cast(result: Any, dtype: dtype) -> Any:
    """Cast a tensor, or each tensor of a tuple."""
    if isinstance(result, tuple):
        return tuple(_cast(one, dtype) for one in result)
    return result._cast(dtype) if isinstance(result, Tensor) else result


def _widened(value: Any) -> Any:
    is_half = isinstance(value, Tensor) and value.dtype.is_floating_point
    return value.float() if is_half and value.dtype.itemsize == 2 else value


def also_in_place(*functions: Callable[..., Tensor]) -> None:
    """Register in-place functions: `relu_(x)`, which calls `relu(x, inplace=True)`."""
    for of in functions:
        function(namespace=NN)(_in_place(of))


def _in_place(of: Callable[..., Tensor]) -> Callable[..., Tensor]:
    signature = inspect.signature(of)
    parameters = [p for p in signature.parameters.values() if p.name != "inplace"]

    @functools.wraps(of)
    def in_place(*args: Any, **kwargs: Any) -> Tensor:
        return of(*args, **kwargs, inplace=True)

    in_place.__name__ = in_place.__qualname__ = f"{of.__name__}_"
    in_place.__doc__ = f"In place: {of.__doc__}"
    in_place.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return in_place


def also_here(*functions: Callable[..., Any]) -> None:
    """Register functions of other namespaces in this one, too."""
    COMPOSITES.update({f"{NN}.{of.__name__}": of for of in functions})


def as_target(target: Any, input: Tensor) -> Tensor:
    """Return a target as a tensor; a list or array becomes one of the input's dtype."""
    if isinstance(target, Tensor):
        return target
    return tensor_beside(input, target, dtype=input.dtype)


def check_alike(name: str, input: Tensor, target: Tensor) -> None:
    """Raise ValueError for a target that would be broadcast."""
    if input.shape != target.shape:
        raise ValueError(
            f"{name}: input of shape {input.shape} and target of shape {target.shape} must have "
            "the same shape\n  hint: broadcasting would compare every pair; reshape one of them"
        )


def weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
    """Multiply losses by weights, if any."""
    return loss if weight is None else loss * weight


def reduced(
    name: str, loss: Tensor, reduction: str, size_average: Any = None, reduce: bool | None = None
) -> Tensor:
    """Return the mean or the sum of the losses of all elements, or the losses themselves."""
    reduction = reduction_of(reduction, size_average, reduce)
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check_reduction(name, reduction)
    return loss


def check_reduction(name: str, reduction: str) -> None:
    """Raise ValueError for an unknown reduction."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: reduction is '{reduction}', expected 'mean', 'sum' or 'none'")


def reduction_of(reduction: str, size_average: Any = None, reduce: bool | None = None) -> str:
    """Return the requested reduction, considering the two deprecated parameters.

    A string as `size_average` is a reduction: GT's losses accept it as their third argument.
    """
    if size_average is None and reduce is None:
        return reduction
    if isinstance(size_average, str):
        return size_average
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(f"size_average and reduce are deprecated: give reduction='{meant}' instead")
    return meant
