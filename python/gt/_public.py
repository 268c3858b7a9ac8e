"""Errors that leave what a module offers to users show the users' lines, and none of GT's own."""

from __future__ import annotations

import types
from typing import Any

from gt._calls import explained
from gt._gt import public_function
from gt._lines import is_own

#: Special methods that users call, by name or by an operator.
_SPECIAL = {
    "__init__",
    "__call__",
    "__getitem__",
    "__setitem__",
    "__enter__",
    "__iter__",
    "__len__",
}


def show_callers(namespace: dict[str, Any]) -> None:
    """Make the functions, constructors and public methods of a module public functions.

    Args:
        namespace: the module's `globals()`, at its end; the names in its `__all__` are public.
    """
    # Two names of one function stay one.
    made: dict[int, Any] = {}
    for name in namespace["__all__"]:
        value = namespace.get(name)
        if isinstance(value, types.FunctionType) and is_own(value.__module__):
            if id(value) not in made:
                made[id(value)] = _public(value, value.__name__)
            namespace[name] = made[id(value)]
        elif isinstance(value, type):
            for kind in value.__mro__:
                if is_own(kind.__module__):
                    _show_callers_of_methods(kind)
    if "__getattr__" in namespace:
        namespace["__getattr__"] = public_function(namespace["__getattr__"])


def _show_callers_of_methods(kind: type) -> None:
    for name, member in list(vars(kind).items()):
        # `forward` is called by `Module.__call__`, which is a public function.
        is_public = name in _SPECIAL or not (name.startswith("_") or name == "forward")
        if isinstance(member, types.FunctionType) and is_public:
            setattr(kind, name, _public(member, name, kind))


def _public(function: Any, name: str, kind: type | None = None) -> Any:
    """Return the public function of a function, or of a class's method or constructor."""

    def recover(
        args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception, is_users: bool
    ) -> Exception:
        shown, given = name, args
        if kind is not None and args:
            owner, given = type(args[0]).__name__, args[1:]
            shown = owner if name in ("__init__", "__call__") else f"{owner}.{name}"
        wrong = explained(function, shown, given, kwargs, error)
        if wrong is None:
            return error
        raise wrong from None

    return public_function(function, recover=recover)


#: The type of public functions.
PublicFunction: type = type(public_function(show_callers))
