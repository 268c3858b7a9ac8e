"""Arguments of calls: how errors show them, and which of them does not fit its annotation."""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from gt._gt import Tensor, is_foreign

#: How errors name types: one value, and several.
_WORDS: dict[Any, tuple[str, str]] = {
    Tensor: ("a tensor", "tensors"),
    bool: ("True or False", "bools"),
    int: ("an int", "ints"),
    float: ("a number", "numbers"),
    complex: ("a number", "numbers"),
    str: ("a string", "strings"),
    type: ("a type", "types"),
    types.NoneType: ("None", "Nones"),
    collections.abc.Callable: ("a function", "functions"),
}

#: The special methods of values that are taken for numbers.
_NUMBERS: dict[Any, tuple[str, ...]] = {
    int: ("__index__",),
    float: ("__index__", "__float__"),
    complex: ("__index__", "__float__", "__complex__"),
}

#: Where errors of Python's name the type of a value.
_OF_TYPES = re.compile(
    r"'([\w.]+)' object|of type '([\w.]+)'"
    r"|instances of '([\w.]+)' and '([\w.]+)'|type\(s\) for [^:]+: '([\w.]+)'"
    r"(?: and '([\w.]+)')?|for unary .: '([\w.]+)'"
    r"|, not '?([\w.]+)'?$|not ([\w.]+) was|with ([\w.]+)$"
)


def misfit(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Return what is wrong with the first argument that does not fit its annotation, if one is so.

    Args:
        function: the function that was called.
        args: the arguments by position; those of a method may lack `self`.
        kwargs: those by name.
    """
    for name, parameter, given in _given(function, args, kwargs):
        wrong = _wrong(name, parameter, given, _kind(function, parameter))
        if wrong is not None:
            return wrong
    return None


def _kind(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return the type in a parameter's annotation, or `Any` if it has none or it is not known."""
    kind = parameter.annotation
    if isinstance(kind, str):
        try:
            # Names that a module imports for type checkers alone are not known.
            kind = eval(kind, getattr(inspect.unwrap(function), "__globals__", {}))
        except (NameError, TypeError, AttributeError):
            return Any
    return Any if kind is parameter.empty else kind


def suspect(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], problem: str
) -> str | None:
    """Return the argument of a type that an error of Python's is about, if there is only one.

    Args:
        function: the function that was called.
        args: the arguments by position; those of a method may lack `self`.
        kwargs: those by name.
        problem: what Python says.
    """
    of_types = {word for found in _OF_TYPES.findall(problem) for word in found if word}
    if problem.startswith(("could not convert string", "invalid literal for")):
        of_types.add("str")
    given = _given(function, args, kwargs)
    each = [
        (f"{name}[{at}]" if item is not value else name, item, parameter)
        for name, parameter, value in given
        for at, item in enumerate(value if type(value) in (list, tuple) else [value])
    ]
    each += [(name, of, parameter) for name, parameter, of in given if type(of) in (list, tuple)]
    found = [
        (name, value, parameter)
        for name, value, parameter in each
        if type(value).__name__ in of_types
        and value is not parameter.default
        and not isinstance(value, Tensor)
    ]
    if len(found) > 1:
        found = [of for of in found if not _is_known(of[1], _kind(function, of[2]))]
    if len(found) != 1:
        return None
    [(name, value, parameter)] = found
    known = type(parameter.default)
    if known in (bool, int, float, str, tuple) and not isinstance(value, known):
        return f"argument '{name}' must be {_expected(known)}, {_not(value)}"
    return f"argument '{name}' does not fit: {_not(value).removeprefix('not ')}"


def _is_known(value: Any, kind: Any) -> bool:
    """Whether an annotation says that a value is as it should be."""
    return kind is not Any and _fits(value, kind)


def _given(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, inspect.Parameter, Any]]:
    """Return the name, the parameter and the value of each argument; none if they do not bind."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    # Functions that are methods of tensors get the tensor.
    has_self = parameters and parameters[0].annotation in ("Tensor", Tensor)
    if parameters and parameters[0].name in ("self", "cls") and not has_self:
        signature = signature.replace(parameters=parameters[1:])
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return []
    found = []
    for name, value in bound.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            names = [name] if len(value) == 1 else [f"{name}[{at}]" for at in range(len(value))]
            found += [(of, parameter, item) for of, item in zip(names, value, strict=True)]
        elif parameter.kind is not parameter.VAR_KEYWORD:
            found.append((name, parameter, value))
    return found


def _wrong(name: str, parameter: inspect.Parameter, given: Any, kind: Any) -> str | None:
    """Return what is wrong with an argument, or None if it fits or nothing is known of it."""
    if given is parameter.default or _fits(given, kind):
        return None
    # Arguments one by one may be one list.
    if parameter.kind is parameter.VAR_POSITIONAL and type(given) in (list, tuple):
        kind = list[kind]
        if _fits(given, kind):
            return None
    if type(given) in (list, tuple):
        for of in map(_items, _options(kind)):
            bad = [index for index, item in enumerate(given) if of and not _fits(item, of)]
            if bad and len(bad) < max(2, len(given)):
                words = _expected(of)
                return f"argument '{name}[{bad[0]}]' must be {words}, {_not(given[bad[0]])}"
    return f"argument '{name}' must be {_expected(kind)}, {_not(given)}"


def _not(given: Any) -> str:
    """Return what an error says of an argument that does not fit: its type and its value."""
    kind, text = type(given).__name__, brief(given)
    shown = "" if text == kind or given is None or isinstance(given, Tensor) else f" {text}"
    return f"not {'None' if given is None else kind}{shown}"


def _options(kind: Any) -> list[Any]:
    """Return the types of a union, or the only type; type variables count as their bounds."""
    if isinstance(kind, typing.TypeVar):
        return _options(kind.__bound__ or Any)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [option for of in typing.get_args(kind) for option in _options(of)]
    return [kind]


def _items(kind: Any) -> Any:
    """Return the type of a container's elements, or None if it is none, or they are of several."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if not _is_container(origin) or not args or issubclass(origin, collections.abc.Mapping):
        return None
    items = {of for of in args if of is not Ellipsis}
    return items.pop() if len(items) == 1 else None


def _is_container(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, collections.abc.Iterable)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value may be of a type; also if nothing is known of the type."""
    return any(_fits_one(value, option) for option in _options(kind))


def _fits_one(value: Any, kind: Any) -> bool:
    origin: Any = typing.get_origin(kind) or kind
    if origin in (Any, object) or not isinstance(origin, type):
        return True
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is Tensor:
        return isinstance(value, Tensor) or is_foreign(value)
    if origin in _NUMBERS:
        return any(hasattr(value, method) for method in _NUMBERS[origin])
    if origin is bool:
        return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    if not _is_container(origin) or origin is str:
        return isinstance(value, origin)
    return _fits_container(value, kind, origin)


def _fits_container(value: Any, kind: Any, origin: type) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    items = _items(kind)
    if origin in (list, tuple, collections.abc.Sequence):
        # Lists and tuples are taken for one another.
        is_container = hasattr(value, "__getitem__") and hasattr(value, "__len__")
        is_container = is_container and not isinstance(value, dict)
    else:
        is_container = isinstance(value, (origin, collections.abc.Iterable))
    if not is_container or items is None or type(value) not in (list, tuple):
        return is_container
    return all(_fits(item, items) for item in value)


def _expected(kind: Any) -> str:
    """Return the types that an argument may have, as an error lists them."""
    return " or ".join(dict.fromkeys(map(_word, _named(kind))))


def _named(kind: Any) -> list[Any]:
    """Return the types of a union that errors list: bools and ints are numbers."""
    options = _options(kind)
    is_any = float in options or complex in options
    return [of for of in options if not (is_any and of in (bool, int))]


def _word(kind: Any, several: bool = False) -> str:
    origin = typing.get_origin(kind) or kind
    if origin in _WORDS:
        return _WORDS[origin][several]
    if not _is_container(origin) or not typing.get_origin(kind):
        name = getattr(origin, "__name__", str(origin))
        name = getattr(origin, "_shown_as", name)
        return f"{name}s" if several else f"{'an' if name[:1] in 'AEIOUaeio' else 'a'} {name}"
    if issubclass(origin, collections.abc.Mapping):
        return "dicts" if several else "a dict"
    items = [of for of in typing.get_args(kind) if of is not Ellipsis]
    unique: Iterable[str] = dict.fromkeys(_items_word(of) for of in items)
    return f"{'lists' if several else 'a list'} of {' or '.join(unique)}"


def _items_word(kind: Any) -> str:
    if kind is Any:
        return "values"
    return " or ".join(dict.fromkeys(_word(option, True) for option in _named(kind)))


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


def check_bool(**arguments: Any) -> None:
    """Check that arguments, passed by their names, are bools.

    Raises:
        TypeError: one is not.
    """
    for name, value in arguments.items():
        if not _fits(value, bool):
            raise TypeError(f"argument '{name}' must be True or False, {_not(value)}")


def check_callable(name: str, value: Any) -> None:
    """Check that an argument can be called.

    Raises:
        TypeError: it cannot.
    """
    if not callable(value):
        raise TypeError(f"{name} is {brief(value)}, expected a function")
