"""The options of `gt cluster up KIND`: the arguments of the class, by the same names."""

from __future__ import annotations

import argparse
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from gt._processes import at_least
from gt.cluster.base import Cluster

#: Arguments that the command sets itself.
_OWN = frozenset({"self", "name", "folder", "keep"})


def add_options(parser: argparse.ArgumentParser, kind: type[Cluster]) -> None:
    """Add an option for each argument of a class, with the help of its documentation."""
    parameters = inspect.signature(kind.__init__).parameters
    for name, settings in arguments(kind).items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            required=parameters[name].default is inspect.Parameter.empty,
            default=None,
            help=documentation(kind, name).replace("%", "%%"),
            **settings,
        )


def arguments(kind: type[Cluster]) -> dict[str, dict[str, Any]]:
    """Return how argparse reads each argument of a class that is an option."""
    hints = typing.get_type_hints(kind.__init__)
    names = inspect.signature(kind.__init__).parameters
    found = {name: _settings(name, hints[name]) for name in names if name not in _OWN}
    return {name: settings for name, settings in found.items() if settings is not None}


def given(args: argparse.Namespace, kind: type[Cluster]) -> dict[str, Any]:
    """Return the arguments of a class that were given as options."""
    names = inspect.signature(kind.__init__).parameters
    values = {name: getattr(args, name, None) for name in names if name not in _OWN}
    return {
        name: dict(value) if _is_pairs(value) else value
        for name, value in values.items()
        if value is not None
    }


def _settings(name: str, hint: Any) -> dict[str, Any] | None:
    """Return how argparse reads a value of a type; None for a type that no option has."""
    choices = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain = [choice for choice in choices if choice is not type(None)]
    for choice in plain:
        origin = typing.get_origin(choice) or choice
        if origin is bool:
            return {"action": argparse.BooleanOptionalAction}
        # Values that are no texts cannot be given in a command line.
        is_text = typing.get_args(choice)[-1:] == (str,)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            pairs = {"action": "append", "type": _pair, "metavar": "NAME=VALUE"}
            return pairs if is_text else None
        if origin in (list, tuple) or origin is Sequence:
            return {"action": "append"} if is_text else None
    if name == "threads":
        return {"type": at_least(1), "metavar": "N"}
    if str in plain:
        return {"type": str}
    for number in (int, float):
        if number in plain:
            return {"type": number, "metavar": "N"}
    return None


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and isinstance(value[0], tuple)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"got '{text}', expected NAME=VALUE")
    return name, value


def documentation(kind: type, name: str) -> str:
    """Return what the documentation of a class says of an argument, in one line."""
    found: list[str] = []
    is_there = False
    for line in inspect.cleandoc(kind.__doc__ or "").splitlines():
        stripped = line.strip()
        starts = line.startswith("    ") and not line.startswith("     ")
        if starts and ":" in stripped and stripped.split(":")[0].replace("_", "").isidentifier():
            is_there = stripped.startswith(f"{name}:")
            stripped = stripped.partition(":")[2].strip()
        elif not line.startswith("    "):
            is_there = False
        if is_there:
            found.append(stripped)
    return " ".join(found)
