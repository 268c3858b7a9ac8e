"""Which classes a file may name: those of GT, those the user allows, or, if trusted, all."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from gt._public import PublicFunction
from gt.formats.pickled import NotAllowed

#: The classes and functions that users allow, by name.
_allowed: dict[str, Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow files to name some classes and functions, so that `gt.load` makes their instances.

    Args:
        safe_globals: the classes and functions, or pairs of one and its name in files.

    >>> class Options: ...
    >>> gt.serialization.add_safe_globals([Options])
    >>> gt.serialization.clear_safe_globals()
    """
    for given in safe_globals:
        value, name = given if isinstance(given, tuple) else (given, _name(given))
        _allowed[name.replace(":", ".")] = value


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` has allowed."""
    _allowed.clear()


def get_safe_globals() -> list[Any]:
    """Return what `add_safe_globals` has allowed."""
    return list(_allowed.values())


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Allow files to name some classes and functions in a `with` block."""
    before = dict(_allowed)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _allowed.clear()
        _allowed.update(before)


def name_of(value: Any) -> str | None:
    """Return the name by which a class or function is found again, or None if it is not."""
    if getattr(value, "__module__", None) is not None:
        name = _name(value)
        return name if _found(name) is value else None
    own = str(getattr(value, "__name__", ""))
    for module in ("gt", "gt.nn.functional"):
        # Functions that are compiled have no module of their own.
        if value is not None and _found(f"{module}:{own}") is value:
            return f"{module}:{own}"
    return None


def named(name: str, is_trusted: bool) -> Any:
    """Return the class or function of a name in a file.

    Args:
        name: the module and the name in it, joined by a colon.
        is_trusted: whether to import any module and return what the name says.

    Raises:
        NotAllowed: the name is neither GT's nor allowed, and the file is not trusted.
        ValueError: there is no such class or function.
    """
    dotted = name.replace(":", ".")
    if dotted in _allowed:
        return _allowed[dotted]
    module, _, own = name.partition(":")
    kinds = (types.FunctionType, types.BuiltinFunctionType, PublicFunction)
    is_function = isinstance(_found(name), kinds)
    is_ours = f"{module}.".startswith("gt.nn.") or (module == "gt" and is_function)
    if not is_ours and not is_trusted:
        raise NotAllowed(
            f"a {dotted}, which is of a program",
            "gt.load(..., weights_only=False) if you trust the file, as modules that it names are "
            f"imported; or gt.serialization.add_safe_globals([{own}]); or save a state_dict() and "
            "plain values instead",
        )
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
    value = _found(name)
    if value is None or not (isinstance(value, type) or callable(value)):
        raise NotAllowed(
            f"a {dotted}, which is not defined here",
            f"define or import {own} before gt.load, in the module of the same name",
        )
    return value


def _name(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


def _found(name: str) -> Any:
    """Return what a module that is imported has under a name, or None."""
    module, _, path = name.partition(":")
    value = sys.modules.get(module)
    for part in path.split("."):
        value = getattr(value, part, None)
    return value
