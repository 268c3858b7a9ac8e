"""Errors about the arguments of a call: the function, the arguments and the signature."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from gt._arguments import brief, misfit, suspect
from gt._lines import is_own

#: How Python's errors begin about strings that are no numbers.
_CONVERSIONS = ("could not convert string", "invalid literal for", "complex() arg is")


@dataclass
class Call:
    """A call of a public function.

    Args:
        function: the function that was called.
        name: its name in errors.
        args: the arguments by position, without `self`.
        kwargs: those by name.
        form: how the user writes the call, with `{}` for the arguments; `name({})` if it is empty.
    """

    function: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    form: str = ""

    def written(self, arguments: str) -> str:
        """Return the call with these arguments."""
        return (self.form or f"{self.name}({{}})").format(arguments)


def explained(call: Call, error: Exception) -> Exception | None:
    """Return an error that names the call that caused it; None for one that is raised as it is.

    An error of GT's, which explains itself, gets the name of the call if it names none.
    """
    is_of_arguments = isinstance(error, (TypeError, AttributeError)) or _is_conversion(error)
    if is_of_arguments and _is_of_python(error.__traceback__):
        return _with_call(call, error)
    if _is_of_gt(error.__traceback__):
        name_call(call.name, error)
    return None


def _is_conversion(error: Exception) -> bool:
    """Whether a string was passed for a number, which Python says as of a value."""
    return isinstance(error, ValueError) and str(error).startswith(_CONVERSIONS)


def _with_call(call: Call, error: Exception) -> Exception | None:
    """Return an error of Python's that names the argument that does not fit, or the whole call."""
    if _begins_with_name(str(error)):
        return None
    wrong = (
        None
        if str(error).startswith("self is ")
        else misfit(call.function, call.args, call.kwargs)
        or suspect(call.function, call.args, call.kwargs, str(error))
    )
    if wrong is not None:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        return kind(f"{call.name}: {wrong}\n{_hint(call)}")
    given = [brief(value) for value in call.args]
    given += [f"{key}={brief(value)}" for key, value in call.kwargs.items()]
    problem, _, hint = str(error).partition("\n")
    problem = problem.removeprefix(f"{call.function.__qualname__}() ")
    problem = problem.removeprefix(f"{call.function.__name__}() ")
    if next(iter(inspect.signature(call.function).parameters), "") in ("self", "cls"):
        problem = _without_self(problem)
    raised = AttributeError if isinstance(error, AttributeError) else TypeError
    text = f"{call.name}: {problem}, in {call.written(', '.join(given))}"
    hint = hint or _hint(call)
    return raised(f"{text}\n{hint}" if hint else text)


def _without_self(problem: str) -> str:
    """Return Python's words about the number of positional arguments, without `self`."""
    counted = re.match(r"takes (?:from (\d+) to )?(\d+) positional arguments? but (\d+)", problem)
    if counted is None:
        return problem
    least, most, given = (number and int(number) - 1 for number in counted.groups())
    takes = f"from {least} to {most}" if least is not None else f"{most}"
    rest = re.sub(r"^ (was|were) ", " was " if given == 1 else " were ", problem[counted.end() :])
    return f"takes {takes} positional argument{'s' * (most != 1)} but {given}{rest}"


def _hint(call: Call) -> str:
    """Return the signature of a call; nothing for a special method that takes no arguments."""
    if call.form and "{}" not in call.form:
        return ""
    signature = plain(inspect.signature(call.function))
    bare = re.sub(r"^\((self|cls)(, )?", "(", signature)
    near = nearest_names(call.function, call.kwargs)
    return f"  hint: {near}{call.written(bare[1:-1])}"


def nearest_names(function: Callable[..., Any], kwargs: dict[str, Any]) -> str:
    """Return the question whether a parameter was meant, for an argument of an unknown name."""
    parameters = inspect.signature(function).parameters
    for name in kwargs.keys() - parameters.keys():
        import difflib  # slow to import

        near = difflib.get_close_matches(name, parameters, n=1)
        if near:
            return f"did you mean {near[0]}? "
    return ""


def name_call(name: str, error: Exception) -> None:
    """Let the message of an error begin with the name of the call, if it begins with no name."""
    text = error.args[0] if len(error.args) == 1 else None
    owner = name.partition(".")[0]
    if (
        isinstance(text, str)
        and not isinstance(error, (AssertionError, AttributeError, ConnectionError, KeyError))
        and not _begins_with_name(text)
        and not re.match(rf"{re.escape(owner)}\b", text, re.IGNORECASE)
    ):
        error.args = (f"{name}: {text}",)


def _begins_with_name(text: str) -> bool:
    """Whether a message begins with the name of a function or a class, or a line of a file."""
    return re.match(r"\S+: ", text) is not None


def _last(entry: TracebackType | None) -> TracebackType | None:
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry


def _is_of_gt(entry: TracebackType | None) -> bool:
    """Whether GT's code has raised an error."""
    last = _last(entry)
    return last is None or is_own(last.tb_frame.f_globals.get("__name__"))


def _is_of_python(entry: TracebackType | None) -> bool:
    """Whether an error was raised by the call itself, or by what GT's code does with arguments."""
    last = _last(entry)
    if last is None:
        return True
    if not is_own(last.tb_frame.f_globals.get("__name__")):
        return False
    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno)
    return not line.lstrip().startswith("raise ")


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
