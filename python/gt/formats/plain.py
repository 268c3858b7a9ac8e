"""The plain values that a pickle may create, whose size is bounded by that of the pickle.

Its functions replace those that a pickle names, and check their arguments.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from gt._device import device as Device
from gt._size import Size

#: The types of keys, besides tuples of them.
_KEYS = (type(None), bool, int, float, complex, str, bytes)
_DEEPEST_KEY = 8
_LARGEST_KEY = 10_000
_LARGEST_INT = 2**63

#: Classes that may be the factory of a defaultdict; a file may name them, but not call them.
CLASSES = {kind.__name__: kind for kind in (list, dict, int, float, tuple, str)}


def key(value: Any) -> Any:
    """Return a value if it may be a key of a dict or an item of a set.

    The size is bounded, because nested tuples that share items can take exponential time to hash.

    Raises:
        ValueError: the value is not a plain value or a small tuple of plain values.
    """
    level, count = [value], 0
    for _ in range(_DEEPEST_KEY + 1):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, tuple):
                count += len(item)
                if count > _LARGEST_KEY:
                    raise ValueError(f"a key of more than {_LARGEST_KEY} values")
                inner.extend(item)
            elif not isinstance(item, _KEYS):
                raise ValueError(f"a {type(item).__name__} as a key, expected a plain value")
        if not inner:
            return value
        level = inner
    raise ValueError(f"a key of tuples more than {_DEEPEST_KEY} deep")


def items(pairs: Any = ()) -> dict[str, Any]:
    """Return the dict of some pairs, whose keys are checked."""
    pairs = pairs.items() if isinstance(pairs, dict) else sequence(pairs)
    return {key(name): value for name, value in pairs}


def sequence(values: Any) -> list[Any] | tuple[Any, ...]:
    """Return a value if it is a list or tuple; other iterables could be endless."""
    if not isinstance(values, (list, tuple)):
        raise ValueError(f"a list or tuple was expected, not a {type(values).__name__}")
    return values


def text(value: Any) -> str:
    """Return a value if it is a string; the repr of other values in messages could be huge."""
    if not isinstance(value, str):
        raise ValueError(f"a str was expected, not a {type(value).__name__}")
    return value


def integer(value: Any) -> int:
    """Return a value if it is an int of at most 64 bits."""
    if not isinstance(value, int) or not -_LARGEST_INT <= value < _LARGEST_INT:
        kind = "a larger int" if isinstance(value, int) else f"a {type(value).__name__}"
        raise ValueError(f"an int of 64 bits was expected, not {kind}")
    return int(value)


def integers(values: Any) -> tuple[int, ...]:
    """Return a list or tuple of ints of at most 64 bits as a tuple."""
    return tuple(integer(value) for value in sequence(values))


def ordered_dict(pairs: Any = ()) -> OrderedDict[Any, Any]:
    """Replace `OrderedDict`."""
    return OrderedDict(items(pairs))


def default_dict(factory: Any = None, pairs: Any = ()) -> defaultdict[Any, Any]:
    """Replace `defaultdict`."""
    if factory is not None and not any(factory is kind for kind in CLASSES.values()):
        raise ValueError(f"a defaultdict with the factory {type(factory).__name__}")
    return defaultdict(factory, items(pairs))


def as_set(values: Any = ()) -> set[Any]:
    """Replace `set`."""
    return {key(value) for value in sequence(values)}


def as_frozenset(values: Any = ()) -> frozenset[Any]:
    """Replace `frozenset`."""
    return frozenset(as_set(values))


def as_bytearray(values: Any = b"", encoding: Any = None) -> bytearray:
    """Replace `bytearray`, which old pickles call with a string and the encoding latin1."""
    if encoding is not None:
        values = encoded(values, encoding)
    if not isinstance(values, bytes):
        raise ValueError(f"a bytearray of a {type(values).__name__}, expected bytes")
    return bytearray(values)


def as_range(*bounds: Any) -> range:
    """Replace `range`."""
    return range(*integers(bounds))


def size(values: Any = ()) -> Size:
    """Replace `torch.Size`."""
    return Size(integers(values))


def device(kind: Any, index: Any = None) -> Device:
    """Replace `torch.device`."""
    return Device(text(kind)) if index is None else Device(text(kind), integer(index))


def encoded(value: Any, encoding: Any) -> bytes:
    """Replace `_codecs.encode`, by which old pickles represent bytes as a latin1 string."""
    if text(encoding) not in ("latin1", "latin-1"):
        raise ValueError(f"bytes in the encoding {encoding[:20]!r}")
    return text(value).encode("latin1")


def names() -> dict[str, Any]:
    """Return the functions that replace those a pickle may call, by module and name."""
    made: dict[str, Any] = {
        "collections OrderedDict": ordered_dict,
        "collections defaultdict": default_dict,
        "torch Size": size,
        "torch device": device,
        "_codecs encode": encoded,
    }
    for module in ("builtins", "__builtin__"):
        made |= {f"{module} {kind.__name__}": kind for kind in (complex, slice)}
        made[f"{module} set"], made[f"{module} frozenset"] = as_set, as_frozenset
        made[f"{module} bytearray"] = as_bytearray
        made[f"{module} range"] = made[f"{module} xrange"] = as_range
    return made


def classes() -> dict[str, type]:
    """Return the classes that a pickle may name but not call, by module and name."""
    modules = ("builtins", "__builtin__")
    return {f"{module} {name}": kind for module in modules for name, kind in CLASSES.items()}
