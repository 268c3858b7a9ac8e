"""Errors about the arguments of a call: the function, the arguments and the signature."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any

from gt._gt import Tensor
from gt._lines import is_own


def explained(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
) -> TypeError | None:
    """Return an error of Python's with the call that caused it; None for an error of GT's.

    Args:
        function: the function that was called.
        name: its name in the error.
        args: the arguments by position, without `self`.
        kwargs: those by name.
        error: what was raised.
    """
    if not _is_of_python(error.__traceback__) or re.match(r"[\w.]+: ", str(error)):
        return None
    given = [brief(value) for value in args]
    given += [f"{key}={brief(value)}" for key, value in kwargs.items()]
    problem, _, hint = str(error).partition("\n")
    problem = problem.removeprefix(f"{function.__qualname__}() ")
    signature = plain(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()")
    hint = hint or f"  hint: {name}{signature}"
    return TypeError(f"{name}: {problem}, in {name}({', '.join(given)})\n{hint}")


def _is_of_python(entry: TracebackType | None) -> bool:
    """Whether an error was raised by the call itself, or by what GT's code does with arguments."""
    if entry is None:
        return True
    while entry.tb_next is not None:
        entry = entry.tb_next
    if not is_own(entry.tb_frame.f_globals.get("__name__")):
        return False
    line = linecache.getline(entry.tb_frame.f_code.co_filename, entry.tb_lineno)
    return not line.lstrip().startswith("raise ")


def brief(value: Any) -> str:
    """Return a value as an error shows it."""
    if isinstance(value, Tensor):
        return f"tensor of shape {value.shape}"
    # Others may take long to show, wait for values, or fail.
    if type(value) in (list, tuple) and len(value) <= 8 and all(map(_is_plain, value)):
        text = repr(value)
    elif _is_plain(value) or type(value) is dict and not value:
        text = repr(value)
    else:
        return type(value).__name__
    return text if len(text) <= 40 else type(value).__name__


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a string or None."""
    return value is None or type(value) in (bool, int, float, complex, str, bytes)


def plain(signature: inspect.Signature) -> str:
    """Return a signature as text, without types."""
    parameters = [_bare(of) for of in signature.parameters.values()]
    bare = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return str(bare)


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter without its type; a function that is its default is shown by its name."""
    default = parameter.default
    if inspect.isroutine(default):
        default = _Name(default.__name__)
    return parameter.replace(annotation=parameter.empty, default=default)


class _Name(str):
    """A text that is shown without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__
