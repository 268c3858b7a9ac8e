"""The tensors that a function uses without taking them as arguments."""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterator
from typing import Any

from gt._gt import Tensor
from gt.nn.module import Module

#: The depth of nested objects up to which tensors are searched.
_DEPTH = 8
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)


def used_tensors(*values: Any) -> list[Tensor]:
    """Return the tensors that functions, modules and other objects hold, each once.

    The search covers modules, closures, globals that a function names, default arguments, the
    objects of bound methods, partial functions, containers, and attributes of objects.
    """
    found: dict[int, Tensor] = {}
    seen: set[int] = set()
    pending = [(value, 0) for value in values]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, _PLAIN) or id(value) in seen or depth > _DEPTH:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor):
            found[id(value)] = value
        else:
            pending.extend((part, depth + 1) for part in _parts(value))
    return list(found.values())


def _parts(value: Any) -> Iterator[Any]:
    """Yield the objects that a value holds directly."""
    if isinstance(value, Module):
        yield from value.__dict__.values()
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif isinstance(value, types.FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif not isinstance(value, types.BuiltinFunctionType):
        yield from getattr(value, "__dict__", {}).values()
        # Partial functions and objects with slots.
        names = [name for name in ("func", "args", "keywords") if hasattr(type(value), name)]
        for name in [*names, *_slots(type(value))]:
            yield getattr(value, name, None)


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def _parts_of_function(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from function.__dict__.values()
    if (function.__module__ or "").startswith("gt."):
        return
    for name in _names(function.__code__):
        if name in function.__globals__ and not hasattr(builtins, name):
            yield function.__globals__[name]


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the global names that code uses, also in functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
