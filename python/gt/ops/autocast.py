"""The precision of composites under autocast.

Primitives are cast where they are issued. A composite is cast as one operation, as its registration
says, which follows PyTorch's lists: its input tensors are cast, and autocast is off while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal

from gt import _gt
from gt._gt import Tensor


class _State(threading.local):
    """The dtype that matrix products are computed in on this thread; None if autocast is off."""

    lower: Any = None


state = _State()


def set_lower(dtype: Any) -> Any:
    """Set the dtype of matrix products on this thread, and return the previous one."""
    before, state.lower = state.lower, dtype
    _gt.set_autocast(dtype)
    return before


#: What autocast does with a composite: it is computed in the lower precision, in float32, or in the
#: widest dtype of its input tensors; `inside` applies it to the operations that the composite
#: consists of. Without one of these its input tensors stay as they are.
AutocastClass = Literal["lower", "float32", "widest", "inside"]


def call(
    autocast: AutocastClass | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a composite under autocast.

    Args:
        autocast: what its registration says.
        function: its implementation.
        args: its positional arguments.
        kwargs: its keyword arguments; with a `dtype` among them nothing is cast.
    """
    if autocast == "inside":
        return function(*args, **kwargs)
    lower = state.lower
    dtype = None if kwargs.get("dtype") is not None else _wanted(autocast, lower, (args, kwargs))
    set_lower(None)
    try:
        if dtype is not None:
            args, kwargs = cast(args, dtype), cast(kwargs, dtype)
        return function(*args, **kwargs)
    finally:
        set_lower(lower)


def cast(value: Any, dtype: Any) -> Any:
    """Cast float tensors except float64, also inside lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return value.to(dtype) if _takes_part(value) else value
    if isinstance(value, dict):
        return {key: cast(each, dtype) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(cast(each, dtype) for each in value)
    return value


def _wanted(autocast: AutocastClass | None, lower: Any, given: Any) -> Any:
    """Return the dtype to cast a composite's tensors to, or None to leave them as they are."""
    if autocast == "lower":
        return lower
    if autocast == "widest":
        return _widest(given)
    return _gt.float32 if autocast == "float32" else None


def _widest(given: Any) -> Any:
    dtypes = {tensor.dtype for tensor in _tensors(given) if _takes_part(tensor)}
    return dtypes.pop() if len(dtypes) == 1 else _gt.float32 if dtypes else None


def _tensors(given: Any) -> list[Tensor]:
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, dict):
        given = list(given.values())
    return (
        [each for one in given for each in _tensors(one)]
        if isinstance(given, (list, tuple))
        else []
    )


def _takes_part(tensor: Tensor) -> bool:
    return tensor.dtype in (_gt.float32, _gt.float16, _gt.bfloat16)
