"""Run `precise.py`, and check that its values are of the types that it states."""

import runpy
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import typing_extensions


def is_of(value: Any, kind: Any) -> bool:
    """Return whether a value, with its elements, is of a type."""
    if kind is Any:
        return True
    if kind is None:
        return value is None
    if get_origin(kind) in (Union, UnionType):
        return any(is_of(value, each) for each in get_args(kind))
    origin = get_origin(kind) or kind
    parts: list[Any] = [*get_args(kind)]
    if not isinstance(value, origin):
        return False
    if origin is tuple and len(parts) > 1 and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(is_of, value, parts))
    if origin is dict:
        return all(is_of(name, parts[0]) and is_of(each, parts[1]) for name, each in value.items())
    return origin not in (list, tuple) or all(is_of(each, parts[0]) for each in value)


def checked(value: Any, kind: Any) -> Any:
    """Return a value, or raise TypeError if it is not of a type."""
    if not is_of(value, kind):
        raise TypeError(f"{value!r} is of type {type(value).__name__}, expected {kind}")
    return value


typing_extensions.assert_type = checked
runpy.run_path(str(Path(__file__).with_name("precise.py")), run_name="__main__")
