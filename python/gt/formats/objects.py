"""Objects in files: their class by name and their attributes; no code is saved.

An object is made without calling its constructor, as copies are: by `__new__`, and by
`__setstate__` or by setting its attributes.
"""

from __future__ import annotations

import argparse
import copyreg
import enum
import pathlib
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from gt._public import PublicFunction
from gt.formats import classes
from gt.formats.plain import CLASSES

#: The classes whose instances are their attributes, by their names in a file.
_NAMESPACES: dict[str, type] = {
    "argparse": argparse.Namespace,
    "simple": types.SimpleNamespace,
}

#: Writes a value that is inside another, which is at a key of it.
Write = Callable[[Any, str], Any]
#: Reads what `Write` has returned.
Read = Callable[[Any], Any]


def describe(value: Any, write: Write) -> dict[str, Any] | None:
    """Return the description of an object, or None if it cannot be saved."""
    kind = type(value)
    if kind is defaultdict:
        factory = getattr(value.default_factory, "__name__", None)
        if value.default_factory is not CLASSES.get(factory or ""):
            return (
                None if factory else {"is": "defaultdict", "factory": None, **_items(value, write)}
            )
        return {"is": "defaultdict", "factory": factory, **_items(value, write)}
    if kind is Counter:
        return {"is": "counter", **_items(value, write)}
    if kind is deque:
        values = [write(item, str(at)) for at, item in enumerate(value)]
        return {"is": "deque", "maxlen": value.maxlen, "items": values}
    if isinstance(value, pathlib.PurePath):
        return {"is": "path", "text": str(value), "pure": not isinstance(value, pathlib.Path)}
    for name, namespace in _NAMESPACES.items():
        if kind is namespace:
            return {"is": "namespace", "kind": name, **_items(vars(value), write)}
    if callable(value) and isinstance(value, (type, *_FUNCTIONS)):
        named = classes.name_of(value)
        return None if named is None else {"is": "named", "name": named}
    named = classes.name_of(kind)
    if named is None:
        return None
    if isinstance(value, enum.Enum):
        return {"is": "enum", "class": named, "value": write(value.value, "value")}
    return _instance(value, named, write)


_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, PublicFunction)


def _items(value: dict[str, Any], write: Write) -> dict[str, Any]:
    return {"items": [[write(key, "key"), write(item, str(key))] for key, item in value.items()]}


def _instance(value: Any, named: str, write: Write) -> dict[str, Any] | None:
    """Return the description of an instance that `copyreg.__newobj__` makes, by its parts."""
    try:
        function, arguments, *parts = value.__reduce_ex__(2)
    except TypeError:
        return None
    if function is not copyreg.__newobj__ or arguments[0] is not type(value):  # type: ignore[attr-defined]
        return None
    state, items, pairs = (*parts, None, None, None)[:3]
    written: dict[str, Any] = {"is": "object", "class": named}
    if arguments[1:]:
        # Of a tuple, or of a number, text or bytes with a class of its own.
        if not isinstance(value, (tuple, int, float, str, bytes)):
            return None
        written["new"] = write(list(arguments[1:]), "values")
    if items is not None and isinstance(value, list):
        written["list"] = [write(item, str(at)) for at, item in enumerate(value)]
    if pairs is not None and isinstance(value, dict):
        written |= _items(value, write)
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes is not None or slots is not None:
        written["state"] = _state(attributes, write)
        if slots:
            written["slots"] = _state(slots, write)
    return written


def _state(state: Any, write: Write) -> Any:
    if not isinstance(state, dict):
        return write(state, "state")
    # The keys of attributes are not a part of the path that tensors are named after.
    return {"is": "dict", **_items(state, write)}


def rebuild(
    written: dict[str, Any], read: Read, is_trusted: bool, keep: Callable[[Any], None]
) -> Any:
    """Return the object of a description, or NotImplemented for one that is none.

    Args:
        written: what `describe` has returned.
        read: reads the values in it.
        is_trusted: whether the file may name any class.
        keep: called with an object before its attributes are read, as they may refer to it.
    """
    kind = written["is"]
    if kind == "defaultdict":
        factory = written["factory"]
        return defaultdict(None if factory is None else CLASSES[factory], _pairs(written, read))
    if kind == "counter":
        return Counter(dict(_pairs(written, read)))
    if kind == "deque":
        return deque((read(item) for item in written["items"]), written["maxlen"])
    if kind == "path":
        return (pathlib.PurePath if written["pure"] else pathlib.Path)(written["text"])
    if kind == "namespace":
        namespace = _NAMESPACES[written["kind"]]()
        keep(namespace)
        vars(namespace).update(_pairs(written, read))
        return namespace
    if kind == "named":
        return classes.named(written["name"], is_trusted)
    if kind == "enum":
        return _class(written, enum.Enum, is_trusted)(read(written["value"]))
    if kind == "object":
        return _made(written, read, is_trusted, keep)
    return NotImplemented


def _pairs(written: dict[str, Any], read: Read) -> Iterator[tuple[Any, Any]]:
    for key, value in written["items"]:
        yield read(key), read(value)


def _class(written: dict[str, Any], base: type, is_trusted: bool) -> Any:
    kind = classes.named(written["class"], is_trusted)
    if not isinstance(kind, type) or not issubclass(kind, base):
        raise ValueError(f"{written['class']} is no class of {base.__name__}")
    return kind


def _made(
    written: dict[str, Any], read: Read, is_trusted: bool, keep: Callable[[Any], None]
) -> Any:
    kind = _class(written, object, is_trusted)
    values = read(written["new"]) if "new" in written else []
    if values and not issubclass(kind, (tuple, int, float, str, bytes)):
        raise ValueError(f"{written['class']} is made of values")
    made = kind.__new__(kind, *values)
    keep(made)
    if "list" in written:
        list.extend(made, [read(item) for item in written["list"]])
    for key, value in _pairs(written, read) if "items" in written else ():
        (OrderedDict if isinstance(made, OrderedDict) else dict).__setitem__(made, key, value)
    state = read(written["state"]) if "state" in written else None
    if hasattr(kind, "__setstate__") and state is not None:
        made.__setstate__(state)
    elif state is not None:
        for name, value in state.items():
            object.__setattr__(made, name, value)
    for name, value in (read(written["slots"]) if "slots" in written else {}).items():
        object.__setattr__(made, name, value)
    return made
