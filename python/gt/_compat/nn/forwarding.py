"""Modules that are declared: their options, and the function of `gt.nn.functional` they call.

    @options
    class Threshold(Forwarding, function=F.threshold):
        threshold: float
        value: float
        inplace: bool = False

is a whole module. Its constructor takes the options and stores them as attributes, and its forward
passes them to the function, by name. Both are compiled from their source, as the methods of a data
class are: a loop over the options would take longer than a small function.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from inspect import Parameter
from typing import TYPE_CHECKING, Any, TypeVar

from gt._gt import Tensor
from gt.nn import functional

from .module import Module

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        """Return a decorator without effect: only type checkers need to know."""
        return lambda decorator: decorator


class Forwarding(Module):
    """A module whose forward calls a function with its input and its options.

    The function gets the annotated attributes of the class and its bases that it has parameters
    for, such as the options that `options` declares, and `training`.
    """

    _function: Callable[..., Any]
    #: The parameters of the constructor, by name; an `InitVar` is no attribute of the module.
    _declared: dict[str, Parameter] = {}
    #: The options that the repr shows; all if None.
    _shown_options: tuple[str, ...] | None = None

    def __init_subclass__(cls, *, function: Callable[..., Any] | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if function is not None:
            cls._function = staticmethod(function)
            if cls._declared and "__init__" not in vars(cls):
                _write_constructor(cls)
            _write_calls(cls)

    def forward(self, input: Tensor) -> Tensor:
        """Return the function's result for the input."""
        return self._call_function(input)

    def _call_function(self, *operands: Any, **further: Any) -> Any:
        """Return the function's result for the operands, with the module's options."""
        raise NotImplementedError(f"{type(self).__name__} names no function")

    def extra_repr(self) -> str:
        """Return the options shown in the repr; `inplace` only if it is set, as in PyTorch."""
        names = _attributes(type(self)) if self._shown_options is None else self._shown_options
        shown = {name: getattr(self, name) for name in names}
        if not shown.get("inplace", True):
            del shown["inplace"]
        return ", ".join(f"{name}={value}" for name, value in shown.items())


Kind = TypeVar("Kind", bound=Forwarding)


@dataclass_transform(eq_default=False)
def options(cls: type[Kind]) -> type[Kind]:
    """Declare a module's annotations as its options, after those of its bases.

    They are the constructor's parameters, with their values as defaults, and become attributes of
    the module. As in data classes, an `InitVar` is only passed to `__post_init__`, and what follows
    `_: KW_ONLY` is given by name.
    """
    declared, by_name = dict(cls._declared), False
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation == "KW_ONLY":
            by_name = True
            continue
        kind = Parameter.KEYWORD_ONLY if by_name else Parameter.POSITIONAL_OR_KEYWORD
        default = vars(cls).get(name, Parameter.empty)
        if name in vars(cls):
            # The constructor has the default. As an attribute of the class it would hide a buffer.
            delattr(cls, name)
        declared[name] = Parameter(name, kind, default=default, annotation=annotation)
    cls._declared = declared
    _write_constructor(cls)
    if hasattr(cls, "_function"):
        _write_calls(cls)
    return cls


def _write_constructor(cls: type[Forwarding]) -> None:
    """Write the constructor of a class, which takes the declared parameters."""
    ordered = sorted(cls._declared.values(), key=lambda parameter: parameter.kind)
    parameters = ["self"]
    for of in ordered:
        if of.kind is of.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        parameters.append(of.name if of.default is of.empty else f"{of.name}={of.name}")
    # Once, for all other bases, and before attributes are set.
    lines = ["super(Forwarding, self).__init__()"]
    lines += [f"self.{name} = {name}" for name in _attributes(cls)]
    if hasattr(cls, "__post_init__"):
        passed = [name for name, of in cls._declared.items() if _is_init_only(of.annotation)]
        lines.append(f"self.__post_init__({', '.join(passed)})")
    namespace = _types_of(cls) | {of.name: of.default for of in ordered}
    namespace |= {"Forwarding": Forwarding, "__name__": __name__}
    source = f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(lines)
    exec(compile(source, __file__, "exec"), namespace)
    constructor = _belongs_to(cls, namespace["__init__"])
    constructor.__annotations__ = {of.name: _type_of(of) for of in ordered} | {"return": "None"}
    cls.__init__ = constructor  # type: ignore[method-assign]


def _write_calls(cls: type[Forwarding]) -> None:
    """Write the methods of a class that call its function; a forward of its own stays."""
    cls._call_function = _call(cls, "_call_function", "*operands, **further")  # type: ignore[method-assign]
    # Otherwise it is of a class that does more than to call the function.
    if cls.forward.__code__.co_filename == __file__:
        cls.forward = _call(cls, "forward", "input")  # type: ignore[method-assign]


def _call(cls: type[Forwarding], name: str, operands: str) -> Callable[..., Any]:
    """Return a method that calls the function with the operands and the module's options."""
    function = cls._function
    # The function is looked up when it is called, as it may be patched.
    owner = "functional" if hasattr(functional, function.__name__) else "Tensor"
    known = {
        attribute
        for base in cls.__mro__
        for attribute, annotation in inspect.get_annotations(base).items()
        if not _is_init_only(annotation)
    }
    passed = [f"{of}=self.{of}" for of in inspect.signature(function).parameters if of in known]
    call = f"{owner}.{function.__name__}({', '.join([operands, *passed])})"
    # Under this file's name it is not a line of the user's program.
    code = compile(f"lambda self, {operands}: {call}", __file__, "eval")
    namespace = {"functional": functional, "Tensor": Tensor, "__name__": __name__}
    method = eval(code, namespace)
    method.__name__, method.__doc__ = name, getattr(Forwarding, name).__doc__
    return _belongs_to(cls, method)


def _belongs_to(cls: type, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method under the name by which errors and pickles name it."""
    method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.{method.__name__}"
    return method


def _attributes(cls: type[Forwarding]) -> tuple[str, ...]:
    """Return the names of the declared options that are attributes."""
    return tuple(name for name, of in cls._declared.items() if not _is_init_only(of.annotation))


def _is_init_only(annotation: Any) -> bool:
    return isinstance(annotation, str) and annotation.startswith("InitVar[")


def _types_of(cls: type[Forwarding]) -> dict[str, Any]:
    """Return what the annotations of the options name, for `typing.get_type_hints`.

    They are written in the modules of the class and its bases.
    """
    names = {name for of in cls._declared.values() for name in re.findall(r"\w+", of.annotation)}
    modules = [vars(sys.modules[base.__module__]) for base in reversed(cls.__mro__)]
    return {name: known[name] for known in modules for name in names & known.keys()}


def _type_of(parameter: Parameter) -> str:
    """Return the annotation of a parameter in the constructor."""
    annotation: str = parameter.annotation
    return annotation[len("InitVar[") : -1] if _is_init_only(annotation) else annotation
