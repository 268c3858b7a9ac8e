"""`torch.overrides` for PyTorch programs: no function of GT calls `__torch_function__`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gt._gt import Tensor

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "is_tensor_like",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return False: no argument changes what a function does."""
    return False


def has_torch_function_unary(obj: Any) -> bool:
    """Return False: no argument changes what a function does."""
    return False


has_torch_function_variadic = has_torch_function_unary


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return the function's result: no argument changes what it does."""
    return public_api(*args, **kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor."""
    return isinstance(inp, Tensor)
