"""Registration of composites: how a Python function becomes an operation.

    @operation(in_place=True)
    def log2(input: Tensor) -> Tensor:
        ...

makes `gt.log2(x)`, `x.log2()` and `x.log2_()`. Nothing else is declared: stubs, the reference and
the tests are derived from the signature and the docstring.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, overload

from gt._arguments import misfit
from gt._calls import Call, explained, nearest_names, plain
from gt._gt import Tensor, add_call, direct_method, faces, public_function
from gt.ops import autocast as _autocast
from gt.ops.annotations import F
from gt.ops.autocast import AutocastClass
from gt.ops.foreign import check_writes, in_tensors

#: Every composite by its qualified name, such as `gt.log2` or `gt.linalg.norm`.
COMPOSITES: dict[str, Callable[..., Any]] = {}

#: The names of composites whose method calls the primitive of the same name where that suffices.
DIRECT: set[str] = set()

#: Other names for parameters, with PyTorch's: NumPy's, those of GT's first losses, and "from",
#: which is a keyword of Python.
_SYNONYMS = {
    "axes": ("dims", "dim0"),
    "axis": ("dim", "dims"),
    "from": ("from_",),
    "keepdims": ("keepdim",),
    "logits": ("input",),
    "predicted": ("input",),
    "targets": ("target",),
    "x": ("input",),
    "x2": ("other",),
}

#: What autocast does with the composites of these namespaces, unless they say otherwise.
_AUTOCAST: dict[str, AutocastClass] = {"gt.linalg": "float32", "gt.fft": "float32"}


@overload
def operation(function: F) -> F: ...
@overload
def operation(
    *,
    namespace: str = "gt",
    method: bool = True,
    in_place: bool = False,
    direct: bool = False,
    aliases: tuple[str, ...] = (),
    autocast: AutocastClass | None = None,
    takes_arrays: bool = False,
) -> Callable[[F], F]: ...
def operation(
    function: F | None = None,
    *,
    namespace: str = "gt",
    method: bool = True,
    in_place: bool = False,
    direct: bool = False,
    aliases: tuple[str, ...] = (),
    autocast: AutocastClass | None = None,
    takes_arrays: bool = False,
) -> Any:
    """Register a function as an operation.

    Args:
        function: the function; its first parameter is the tensor that the method is called on.
        namespace: the module that users find it in.
        method: whether `Tensor` also has it as a method.
        in_place: whether `Tensor` also has a method with `_` after its name that stores the result.
        direct: whether the method calls the primitive of the same name itself, and the function
            only for arguments that the primitive does not take.
        aliases: other names of the operation.
        autocast: what autocast does with it. All of `gt.linalg` and `gt.fft` is computed in
            float32 by default.
        takes_arrays: whether it takes arrays itself; otherwise they become tensors first.
    """
    if function is None:
        return functools.partial(
            operation,
            namespace=namespace,
            method=method,
            in_place=in_place,
            direct=direct,
            aliases=aliases,
            autocast=autocast,
            takes_arrays=takes_arrays,
        )
    checked = _checked(function, autocast or _AUTOCAST.get(namespace), takes_arrays)
    _add_call(function)
    for name in (function.__name__, *aliases):
        COMPOSITES[f"{namespace}.{name}"] = checked
        if method:
            setattr(Tensor, name, _direct(checked) if direct else checked)
        if in_place:
            setattr(Tensor, f"{name}_", _in_place(checked, f"{name}_"))
    return checked


@overload
def function(function: F) -> F: ...
@overload
def function(*, namespace: str = "gt", **options: Any) -> Callable[[F], F]: ...
def function(function: F | None = None, *, namespace: str = "gt", **options: Any) -> Any:
    """Register a function as an operation without a method."""
    register = operation(namespace=namespace, method=False, **options)
    return register if function is None else register(function)


def extend_tensor(**attributes: Any) -> None:
    """Set attributes of `Tensor`, such as properties and methods that are no function of `gt`."""
    for name, value in attributes.items():
        if type(value) is property:
            get, set_ = _shown(value.fget, name), _shown(value.fset, name)
            value = property(get, set_, value.fdel, value.__doc__)
        setattr(Tensor, name, _shown(value, name))


def _shown(value: Any, name: str) -> Any:
    """Return the public function of a plain one; other values as they are."""
    return public_function(value, name) if type(value) is types.FunctionType else value


def namespace(name: str) -> dict[str, Callable[..., Any]]:
    """Return all operations of a public namespace by name; a composite hides the primitive."""
    composites = {}
    for qualified, composite in COMPOSITES.items():
        within, _, own = qualified.rpartition(".")
        if within == name:
            composites[own] = composite
    return {**faces.get(name, {}), **composites}


def _add_call(function: Callable[..., Any]) -> None:
    """Register a function's name, and its name for indices, for errors about what it computes."""
    parameters = inspect.signature(function).parameters
    operand = "target" if {"target", "targets"} & parameters.keys() else "index"
    own = inspect.unwrap(function)
    if inspect.isfunction(own) and own.__name__ == function.__name__:
        add_call(own.__code__, function.__name__, operand)


def _checked(
    function: Callable[..., Any], autocast: AutocastClass | None, takes_arrays: bool
) -> Callable[..., Any]:
    """Accept synonyms for parameter names, and explain which argument has a wrong type."""

    def under_autocast(*args: Any, **kwargs: Any) -> Any:
        return _autocast.call(autocast, function, args, kwargs)

    def recover(
        args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception | None, is_users: bool
    ) -> Any:
        converted = None if takes_arrays else in_tensors(args, kwargs)
        if converted is not None:
            check_writes(function, args, kwargs)
            return checked(*converted[0], **converted[1])
        if error is None:
            return function(*args, **kwargs)
        renamed = _renamed(function, kwargs)
        if renamed is not None:
            return checked(*args, **renamed)
        wrong: Exception | None = _misfit(function, args, kwargs)
        if wrong is None and is_users:
            wrong = explained(Call(function, function.__name__, args, kwargs), error)
        if wrong is None:
            return error
        raise wrong from None

    checked = public_function(function, function.__name__, under_autocast, recover, True)
    return checked


def _renamed(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments under PyTorch's names, or None where no name is a synonym."""
    parameters = inspect.signature(function).parameters
    if any(of.kind is of.VAR_KEYWORD for of in parameters.values()):
        return None
    twice = next((name for name in given if set(_SYNONYMS.get(name, ())) & given.keys()), None)
    if twice is not None:
        own = _SYNONYMS[twice][0]
        raise TypeError(f"{function.__name__}: give {twice} or {own}, which are the same, not both")
    names = {
        name: own
        for name in given.keys() - parameters.keys()
        for own in _SYNONYMS.get(name, ())
        if own in parameters and own not in given
    }
    if not names:
        return None
    return {names.get(name, name): value for name, value in given.items()}


def _misfit(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TypeError | None:
    """Return the error for arguments that do not fit the signature or its types, if any."""
    name, signature = function.__name__, inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        near = nearest_names(function, kwargs)
        return TypeError(f"{name}: {error}\n  hint: {near}{name}{plain(signature)}")
    wrong = misfit(function, args, kwargs)
    return TypeError(f"{name}: {wrong}") if wrong else None


def _direct(function: Callable[..., Any]) -> Any:
    """Return a method that calls the primitive, or the function where the primitive cannot."""
    signature = inspect.signature(function)
    _, *others = signature.parameters.values()
    own = plain(signature.replace(parameters=others)).removeprefix("(")
    DIRECT.add(function.__name__)
    text = f"{function.__name__}($self, /, {own}\n--\n\n{inspect.getdoc(function)}"
    return direct_method(function.__name__, function, text)


def _in_place(function: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    """Return a method that stores a function's result in its first argument."""

    @functools.wraps(function)
    def in_place(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self._assign(function(self, *args, **kwargs), name)

    in_place.__name__ = name
    in_place.__doc__ = f"In place: {function.__doc__}"
    return public_function(in_place, name)
