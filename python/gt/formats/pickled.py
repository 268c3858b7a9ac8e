"""A reader of pickles that creates only tensors and containers.

A pickle is a program for a small stack machine that may call any function it names. This machine
calls only functions from a given table; `pickletools` of the standard library decodes the
instructions.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any

from gt.formats import plain

#: Marks the place on the stack where the items of a tuple, list or dict begin.
_MARK = object()

#: Instructions that push their argument on the stack.
_CONSTANTS = frozenset(
    """INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE BINUNICODE
    SHORT_BINUNICODE BINUNICODE8 STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES
    BINBYTES8 BYTEARRAY8""".split()
)
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: _MARK,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


_SAVE_PLAIN = (
    "nothing in a file is executed; save a state_dict() and plain values instead of objects"
)
_BROKEN = (
    *(IndexError, KeyError, TypeError, AttributeError, ValueError),
    *(OverflowError, MemoryError, RecursionError),
)


class NotAllowed(ValueError):
    """A pickle contains an object that is not supported.

    Args:
        what: a description of the object.
        hint: what the user can do.
    """

    def __init__(self, what: str, hint: str = _SAVE_PLAIN):
        super().__init__(what)
        self.hint = hint


class Machine:
    """The stack machine that executes a pickle.

    Args:
        allowed: the functions that a pickle may call and the values it may use, by names such as
            `"collections OrderedDict"`.
        named: values that a pickle may name but not call, by name.
        refused: description and hint for names that raise a specific error.
        persistent: returns the object of a persistent id.
        build: called as build(object, state) when a pickle sets an object's state; returns the
            object.
    """

    def __init__(
        self,
        allowed: Mapping[str, Any],
        persistent: Callable[[Any], Any],
        build: Callable[[Any, Any], Any],
        named: Mapping[str, Any] | None = None,
        refused: Mapping[str, tuple[str, str]] | None = None,
    ):
        self._named, self._refused = named or {}, refused or {}
        self._allowed, self._persistent, self._build = allowed, persistent, build
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, program: bytes) -> Any:
        """Return the object of a pickle.

        Raises:
            NotAllowed: a name is not in the tables, or an instruction creates other objects.
            ValueError: the bytes are not a valid pickle.
        """
        try:
            for operation, argument, _ in pickletools.genops(program):
                if operation.name == "STOP":
                    return self._stack.pop()
                self._step(operation.name, argument)
        except NotAllowed:
            raise
        except _BROKEN as error:
            raise ValueError(f"the pickle is broken: {error!r}") from error
        raise ValueError("the pickle is broken: it does not end")

    def _step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _CONSTANTS:
            stack.append(argument)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            count = _TUPLES[name]
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self._memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self._memo[argument])
        elif name == "BUILD":
            self._set_state()
        elif name not in ("PROTO", "FRAME"):
            handler = getattr(self, f"_{name.lower()}", None)
            if handler is None:
                raise NotAllowed(f"the pickle instruction {name}, which is not supported")
            handler(argument)

    def _to_mark(self) -> list[Any]:
        """Pop and return the items above the last mark, and pop the mark."""
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
        items = self._stack[at + 1 :]
        del self._stack[at:]
        return items

    def _pop(self, _: Any) -> None:
        self._stack.pop()

    def _pop_mark(self, _: Any) -> None:
        self._to_mark()

    def _dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    def _tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._to_mark()))

    def _list(self, _: Any) -> None:
        self._stack.append(self._to_mark())

    def _dict(self, _: Any) -> None:
        items = self._to_mark()
        self._stack.append(_paired(items))

    def _frozenset(self, _: Any) -> None:
        self._stack.append(plain.as_frozenset(self._to_mark()))

    def _append(self, _: Any) -> None:
        item = self._stack.pop()
        _checked(self._stack[-1], list).append(item)

    def _appends(self, _: Any) -> None:
        items = self._to_mark()
        _checked(self._stack[-1], list).extend(items)

    def _setitem(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        _checked(self._stack[-1], dict)[plain.key(key)] = value

    def _setitems(self, _: Any) -> None:
        items = self._to_mark()
        _checked(self._stack[-1], dict).update(_paired(items))

    def _additems(self, _: Any) -> None:
        items = self._to_mark()
        _checked(self._stack[-1], set).update(plain.as_set(items))

    def _global(self, name: str) -> None:
        if name in self._refused:
            raise NotAllowed(*self._refused[name])
        known = self._allowed if name in self._allowed else self._named
        if name not in known:
            raise NotAllowed(f"'{name.replace(' ', '.')}', which is not a tensor or a container")
        self._stack.append(known[name])

    def _stack_global(self, _: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._global(f"{plain.text(module)} {plain.text(name)}")

    def _reduce(self, _: Any) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not callable(function) or not any(function is one for one in self._allowed.values()):
            name = getattr(function, "__name__", f"a {type(function).__name__}")
            raise NotAllowed(f"a call of {name}")
        self._stack.append(function(*_checked(arguments, tuple)))

    def _newobj(self, argument: Any) -> None:
        self._reduce(argument)

    def _set_state(self) -> None:
        state = self._stack.pop()
        self._stack.append(self._build(self._stack.pop(), state))

    def _binpersid(self, _: Any) -> None:
        self._stack.append(self._persistent(self._stack.pop()))


def _checked(value: Any, kind: type) -> Any:
    """Return a value if it is of the type that an instruction expects, else raise."""
    if not isinstance(value, kind):
        raise ValueError(f"a {kind.__name__} was expected, not a {type(value).__name__}")
    return value


def _paired(items: list[Any]) -> dict[str, Any]:
    """Return the dict of a list of alternating keys and values."""
    return plain.items(list(zip(items[::2], items[1::2], strict=True)))
