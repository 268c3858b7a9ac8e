"""Arrays of NumPy's and tensors of PyTorch's as arguments of operations.

Operators and primitives convert them themselves. A function that is written in Python gets tensors
if an argument is foreign; one that meets arrays in a list is called again with tensors where it
fails.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import gt
from gt import _gt
from gt._gt import Tensor, is_foreign


def in_tensors(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return a call's arguments with foreign arrays as tensors, or None if there are none.

    Lists and tuples of tensors may contain arrays, too.

    Raises:
        TypeError: a tensor of PyTorch's requires a gradient.
    """
    given = [*args, *kwargs.values()]
    if not any(_has(value) for value in given):
        return None
    own = next((own for own in map(_tensor, given) if own is not None), None)
    # An array becomes a tensor of the session of the others.
    with gt.Session.of(own).use() if own is not None else contextlib.nullcontext():
        converted = [_converted(value) for value in given]
    named = dict(zip(kwargs, converted[len(args) :], strict=True))
    return tuple(converted[: len(args)]), named


def check_writes(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise an error if a function would write into an array: it gets a copy in a tensor.

    Raises:
        TypeError: the function works in place, or updates running statistics that are arrays.
    """
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return
    first = next(iter(given), "")
    written = [first] if function.__name__.endswith("_") or given.get("inplace") else []
    if given.get("training") or given.get("use_input_stats", False):
        written += ["running_mean", "running_var"]
    for name in written:
        if is_foreign(given.get(name)):
            raise TypeError(
                f"{function.__name__}: {name} is written to, but it is of type "
                f"{type(given[name]).__module__}.{type(given[name]).__name__}\n"
                "  hint: gt.tensor(...) makes a tensor of it first"
            )


def _tensor(value: Any) -> Tensor | None:
    """Return an argument that is a tensor of GT's, or the first one in a list, if there is one."""
    values = value if type(value) in (list, tuple) else (value,)
    return next((item for item in values if isinstance(item, Tensor)), None)


def _has(value: Any) -> bool:
    return any(map(is_foreign, value if type(value) in (list, tuple) else (value,)))


def _converted(value: Any) -> Any:
    if type(value) in (list, tuple) and _has(value):
        return type(value)(map(_converted, value))
    return to_tensor(value) if is_foreign(value) else value


def to_tensor(value: Any) -> Tensor:
    """Return the tensor of an array or of a tensor of PyTorch's.

    Raises:
        TypeError: a tensor of PyTorch's requires a gradient.
    """
    if getattr(value, "requires_grad", False):
        raise TypeError(
            "a tensor of PyTorch's that requires a gradient: gradients do not flow from GT to "
            "PyTorch\n  hint: gt.tensor(t.detach(), requires_grad=True)"
        )
    return _gt.tensor(value.cpu() if hasattr(value, "cpu") else value)
