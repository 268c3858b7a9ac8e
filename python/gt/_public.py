"""Errors that leave what a module offers to users show the users' lines, and none of GT's own."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from typing import Any

from gt._arguments import brief
from gt._calls import Call, explained
from gt._gt import public_function
from gt._lines import is_own

#: Special methods that Python calls by a name of its own, so that no message names them.
_UNNAMED = {"__getattr__", "__setattr__", "__delattr__", "__getattribute__", "__set_name__"}

#: How users write the calls of some special methods: with the class and the arguments.
_FORMS = {
    "__init__": "{0}({1})",
    "__new__": "{0}({1})",
    "__call__": "{0}(...)({1})",
    "__getitem__": "{0}[{1}]",
    "__len__": "len({0})",
    "__iter__": "iter({0})",
    "__next__": "next({0})",
}


def show_callers(namespace: dict[str, Any]) -> None:
    """Make the functions, constructors and public methods of a module public functions.

    Args:
        namespace: the module's `globals()`, at its end; the names in its `__all__` are public, or
            those that it defines and that begin without `_`.
    """
    # Two names of one function stay one.
    made: dict[int, Any] = {}
    for name in namespace.get("__all__") or _defined(namespace):
        value = namespace.get(name)
        if type(value) is types.FunctionType and is_own(value.__module__):
            if id(value) not in made:
                made[id(value)] = _public(value, value.__name__)
                _replace_where_defined(value, made[id(value)])
            namespace[name] = made[id(value)]
        elif isinstance(value, type):
            show_callers_of_methods(value)
    if "__getattr__" not in namespace:
        namespace["__getattr__"] = _missing_names(namespace)
    if type(namespace.get("__getattr__")) is types.FunctionType:
        namespace["__getattr__"] = public_function(namespace["__getattr__"])


def missing_name(namespace: dict[str, Any], name: str) -> AttributeError:
    """Return the error for a name that a module does not have, with the nearest name that it has.

    Args:
        namespace: the module's `globals()`.
        name: the name.
    """
    module = namespace["__name__"]
    text = f"module '{module}' has no attribute '{name}'"
    if name.startswith("_"):
        return AttributeError(text)
    import difflib  # slow to import

    near = difflib.get_close_matches(name, namespace.get("__all__") or _defined(namespace), n=1)
    if not near:
        return AttributeError(text)
    # With `obj` and without a name, Python adds no suggestion of its own.
    return AttributeError(f"{text}\n  hint: {module}.{near[0]}", obj=sys.modules.get(module))


def _missing_names(namespace: dict[str, Any]) -> types.FunctionType:
    """Return the `__getattr__` of a module that has none of its own."""

    def __getattr__(name: str) -> Any:
        raise missing_name(namespace, name)

    return __getattr__  # type: ignore[return-value]


def _defined(namespace: dict[str, Any]) -> list[str]:
    """Return the public names of what a module defines."""
    own = namespace["__name__"]
    defined = [name for name, it in namespace.items() if getattr(it, "__module__", None) == own]
    return [name for name in defined if not name.startswith("_")]


def _replace_where_defined(function: types.FunctionType, public: Any) -> None:
    """Let the module that defines a function have the public one, as pickles look for it there."""
    module = sys.modules.get(function.__module__)
    if module is not None and vars(module).get(function.__name__) is function:
        setattr(module, function.__name__, public)


def show_callers_of_methods(kind: type) -> None:
    """Make the methods, constructors and properties of a class and its bases public functions.

    Special methods are public like those whose names begin without `_`.
    """
    for base in kind.__mro__:
        if not is_own(base.__module__):
            continue
        for name, member in list(vars(base).items()):
            if not name.startswith("_") or name.startswith("__"):
                public = _public_member(member, name, base)
                if public is not member:
                    setattr(base, name, public)


def _public_member(member: Any, name: str, kind: type) -> Any:
    if type(member) in (classmethod, staticmethod):
        # The constructor is called like `__init__`, with the class in place of the instance.
        has_class = type(member) is classmethod or name == "__new__"
        public = _public_method(member.__func__, name, kind, has_class)
        return member if public is member.__func__ else type(member)(public)
    if type(member) is property:
        get, set_, delete = map(_unnamed, (member.fget, member.fset, member.fdel))
        return property(get, set_, delete, member.__doc__)
    if type(member) is functools.cached_property:
        member.func = _unnamed(member.func)
        return member
    return _public_method(member, name, kind, True)


def _public_method(function: Any, name: str, kind: type, is_bound: bool) -> Any:
    if name in _UNNAMED:
        return _unnamed(function)
    if type(function) is not types.FunctionType:
        return function
    return _public(function, name, kind, is_bound)


def _unnamed(function: Any) -> Any:
    """Return the public function of a function that errors do not name."""
    return public_function(function) if type(function) is types.FunctionType else function


def _public(
    function: types.FunctionType, name: str, kind: type | None = None, is_bound: bool = False
) -> Any:
    """Return the public function of a function, or of a method of a class.

    Args:
        function: the function.
        name: its name.
        kind: the class that has it.
        is_bound: whether the first argument is the instance or the class.
    """
    converts = _computes(function, name)

    def recover(
        args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception | None, is_users: bool
    ) -> Any:
        first = error
        converted = _in_tensors(function, args, kwargs) if converts else None
        if converted is not None:
            args, kwargs = converted
        if error is None or converted is not None:
            try:
                return function(*args, **kwargs)
            except Exception as raised:
                error = raised
        if is_users and kind and is_bound and args and not _is_of(args[0], kind):
            error = TypeError(f"self is {brief(args[0])}, expected {_with_article(kind)}")
        call = _call(function, name, kind, is_bound, args, kwargs)
        wrong = explained(call, error) if is_users else None
        if wrong is not None:
            raise wrong from None
        if error is not first:
            raise error
        return error

    return public_function(function, recover=recover, converts=converts)


def _call(
    function: types.FunctionType,
    name: str,
    kind: type | None,
    is_bound: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Call:
    call = Call(function, name, args, kwargs)
    return call if kind is None else _call_of_method(call, kind, is_bound)


def _computes(function: types.FunctionType, name: str) -> bool:
    """Whether a function computes with its arguments, and so gets tensors in place of arrays.

    Other functions store what they get, pass it on, or work in place on a program's parameters.
    """
    module = function.__module__
    kinds = [str(kind) for of, kind in function.__annotations__.items() if of != "return"]
    takes_tensors = any("Tensor" in kind for kind in kinds)
    if module.startswith("gt.distributions."):
        return takes_tensors or "Any" in kinds
    is_layer = module.startswith("gt.nn.") and name == "forward"
    return takes_tensors and (is_layer or module.startswith(("gt.autograd", "gt.nn.utils.rnn")))


def _in_tensors(
    function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments with tensors in place of arrays, or None if there are none."""
    from gt.ops.foreign import check_writes, in_tensors  # it imports modules that import this one

    converted = in_tensors(args, kwargs)
    if converted is not None:
        check_writes(function, args, kwargs)
    return converted


def _is_of(value: Any, kind: type) -> bool:
    """Whether a value is an instance of a class, or the class or a subclass."""
    return isinstance(value, kind) or isinstance(value, type) and issubclass(value, kind)


def _with_article(kind: type) -> str:
    name = getattr(kind, "_shown_as", kind.__name__)
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _call_of_method(call: Call, kind: type, is_bound: bool) -> Call:
    """Return the call of a method without the instance, as the user writes it."""
    own, args, makes = kind, call.args, False
    if is_bound and args:
        makes = isinstance(args[0], type)
        given = args[0] if isinstance(args[0], type) else type(args[0])
        # A method that is called as a function of its class may get anything.
        if _is_of(args[0], kind):
            own, args = given, args[1:]
    owner = getattr(own, "_shown_as", own.__name__)
    if not call.name.startswith("__"):
        return Call(call.function, f"{owner}.{call.name}", args, call.kwargs)
    function = call.function
    form = _FORMS.get(call.name, "{0}." + call.name + "({1})")
    if call.name == "__call__" and makes:
        form = _FORMS["__new__"]
    elif call.name == "__call__":
        # A module is called with the arguments of its `forward`.
        function = getattr(own, "forward", function)
    return Call(function, owner, args, call.kwargs, form.format(owner, "{}"))


class Context(contextlib._GeneratorContextManager[Any]):
    """A context manager that a generator of GT's defines."""

    @public_function
    def __enter__(self) -> Any:
        """Run the generator until it yields."""
        return super().__enter__()

    @public_function
    def __exit__(self, *exception: Any) -> Any:
        """Run the rest of the generator."""
        return super().__exit__(*exception)


#: The type of public functions.
PublicFunction: type = type(public_function(show_callers))
