"""Modules that are declared: their options, and the function of `gt.nn.functional` they call.

    @options
    class Threshold(Forwarding, function=F.threshold):
        threshold: float
        value: float
        inplace: bool = False

is a whole module. Its constructor takes the options and stores them as attributes, and its forward
passes them to the function, by name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from gt._gt import Tensor

from .module import Module

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        """Return a decorator without effect: only type checkers need to know."""
        return lambda decorator: decorator


class Forwarding(Module):
    """A module whose forward calls a function with its input and its options.

    The options are the annotated attributes of the class and its bases that are parameters of the
    function, and `training` if the function takes it.
    """

    #: The annotated attributes.
    _options: tuple[str, ...] = ()
    #: The attributes that the repr shows; all options if None.
    _shown: tuple[str, ...] | None = None

    def __init_subclass__(cls, *, function: Callable[..., Any] | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if function is None:
            return
        cls._options = _annotated(cls)
        cls._result = _call(function, "*operands, **further", cls)  # type: ignore[method-assign]
        if cls.forward.__module__ == __name__:
            cls.forward = _call(function, "input", cls)  # type: ignore[method-assign]

    def forward(self, input: Tensor) -> Any:
        """Return the function's result for the input."""
        return self._result(input)

    def _result(self, *operands: Any, **further: Any) -> Any:
        """Return the function's result for the operands, with the module's options."""
        raise NotImplementedError(f"{type(self).__name__} names no function")

    def extra_repr(self) -> str:
        """Return the options shown in the repr; `inplace` only if it is set, as in PyTorch."""
        names = self._options if self._shown is None else self._shown
        shown = {name: getattr(self, name) for name in names}
        if not shown.get("inplace", True):
            del shown["inplace"]
        return ", ".join(f"{name}={value}" for name, value in shown.items())


Kind = TypeVar("Kind", bound=Forwarding)


@dataclass_transform(eq_default=False)
def options(cls: type[Kind]) -> type[Kind]:
    """Make a constructor of a module's annotations, as `dataclasses.dataclass` does.

    They are the constructor's parameters, in their order, with their values as defaults, and
    become attributes of the module. An `InitVar` is only passed to `__post_init__`.
    """
    dataclass(eq=False, repr=False, match_args=False)(cls)
    set_options = cls.__init__
    for name, kind in set_options.__annotations__.items():
        if _is_init_only(kind):
            set_options.__annotations__[name] = kind[len("InitVar[") : -1]

    @functools.wraps(set_options)
    def __init__(self: Forwarding, *args: Any, **kwargs: Any) -> None:
        # Once, for all other bases, and before attributes are set.
        super(Forwarding, self).__init__()
        set_options(self, *args, **kwargs)

    cls.__init__ = __init__  # type: ignore[method-assign, assignment]
    for name in inspect.get_annotations(cls):
        # The constructor has the default. As an attribute of the class it would hide a buffer.
        if name in vars(cls):
            delattr(cls, name)
    return cls


def _call(function: Callable[..., Any], operands: str, cls: type[Forwarding]) -> Callable[..., Any]:
    """Return a method that calls a function with the operands and the module's options.

    It is compiled from its source, as constructors of data classes are: a loop over the options
    would take longer than a small function.
    """
    names = inspect.signature(function).parameters
    passed = (f"{name}=self.{name}" for name in names if name in (*cls._options, "training"))
    source = f"lambda self, {operands}: function({', '.join([operands, *passed])})"
    # Under this file's name it is not a line of the user's program.
    code = compile(source, __file__, "eval")
    method = eval(code, {"function": function, "__name__": __name__})
    method.__name__ = "forward" if operands == "input" else "_result"
    method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    method.__doc__ = getattr(Forwarding, method.__name__).__doc__
    return method


def _annotated(cls: type) -> tuple[str, ...]:
    """Return the annotated attributes of a module's class and its bases below `Forwarding`."""
    bases = [base for base in reversed(cls.__mro__) if issubclass(base, Forwarding)][1:]
    annotations = [item for base in bases for item in inspect.get_annotations(base).items()]
    return tuple(dict.fromkeys(name for name, kind in annotations if not _is_init_only(kind)))


def _is_init_only(annotation: Any) -> bool:
    return isinstance(annotation, str) and annotation.startswith("InitVar[")
