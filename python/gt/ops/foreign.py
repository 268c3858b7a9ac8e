"""Arrays of NumPy's and tensors of PyTorch's as arguments of operations.

Operators and primitives convert them themselves. A function that is written in Python gets tensors
if an argument is foreign; one that meets arrays in a list is called again with tensors where it
fails.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import gt
from gt import _gt
from gt._gt import Tensor


def in_tensors(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return a call's arguments with foreign arrays as tensors, or None if there are none.

    Lists and tuples of tensors may contain arrays, too.

    Raises:
        TypeError: a tensor of PyTorch's requires a gradient.
    """
    kinds = _kinds()
    given = [*args, *kwargs.values()]
    if not any(_has(value, kinds) for value in given):
        return None
    own = next((own for own in map(_tensor, given) if own is not None), None)
    # An array becomes a tensor of the session of the others.
    with gt.Session.of(own).use() if own is not None else contextlib.nullcontext():
        converted = [_converted(value, kinds) for value in given]
    named = dict(zip(kwargs, converted[len(args) :], strict=True))
    return tuple(converted[: len(args)]), named


def check_writes(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise an error if a function would write into an array: it gets a copy in a tensor.

    Raises:
        TypeError: the function works in place, or updates running statistics that are arrays.
    """
    kinds = _kinds()
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return
    first = next(iter(given), "")
    written = [first] if function.__name__.endswith("_") or given.get("inplace") else []
    if given.get("training") or given.get("use_input_stats", False):
        written += ["running_mean", "running_var"]
    for name in written:
        if isinstance(given.get(name), kinds):
            raise TypeError(
                f"{function.__name__}: {name} is written to, but it is of type "
                f"{type(given[name]).__module__}.{type(given[name]).__name__}\n"
                "  hint: gt.tensor(...) makes a tensor of it first"
            )


def _kinds() -> tuple[type, ...]:
    """Return the foreign classes, of the packages that are imported."""
    modules = (sys.modules.get("numpy"), sys.modules.get("torch"))
    names = ("ndarray", "Tensor")
    found = [getattr(of, name, None) for of, name in zip(modules, names, strict=True)]
    return tuple(kind for kind in found if isinstance(kind, type))


def _tensor(value: Any) -> Tensor | None:
    """Return an argument that is a tensor of GT's, or the first one in a list, if there is one."""
    values = value if type(value) in (list, tuple) else (value,)
    return next((item for item in values if isinstance(item, Tensor)), None)


def _has(value: Any, kinds: tuple[type, ...]) -> bool:
    if type(value) in (list, tuple):
        return any(isinstance(item, kinds) for item in value)
    return isinstance(value, kinds)


def _converted(value: Any, kinds: tuple[type, ...]) -> Any:
    if type(value) in (list, tuple) and _has(value, kinds):
        return type(value)(_converted(item, kinds) for item in value)
    if not isinstance(value, kinds):
        return value
    return to_tensor(value)


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
    if str(value.dtype) == "torch.bfloat16":
        return _gt.tensor(value.float().cpu().numpy(), "bfloat16")
    return _gt.tensor(value.cpu().numpy() if hasattr(value, "cpu") else value)
