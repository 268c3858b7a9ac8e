"""Decorators of PyTorch's script compiler; functions and modules stay unchanged.

GT finds and compiles repeated sequences without them; see `gt.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar  # noqa: F401 - programs write gt.jit.Final

from gt._absent import absent_names
from gt._public import show_callers

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "Attribute",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "optimize_for_inference",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


def script(obj: F, *args: Any, **kwargs: Any) -> F:
    """Return a function, class or module unchanged.

    >>> gt.jit.script(lambda x: x + 1)(gt.ones(1))
    tensor([2.], dtype=float32)
    """
    return obj


def trace(func: F, example_inputs: Any = None, *args: Any, **kwargs: Any) -> F:
    """Return a function or module unchanged: every call runs all of it, whatever the inputs."""
    return func


def export(fn: F) -> F:
    """Return a method unchanged."""
    return fn


def unused(fn: F) -> F:
    """Return a method unchanged."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a method unchanged: `@gt.jit.ignore`, or `@gt.jit.ignore(drop=True)`."""
    return drop if callable(drop) else lambda fn: fn


def script_method(fn: F) -> F:
    """Return a method unchanged."""
    return fn


def script_if_tracing(fn: F) -> F:
    """Return a function unchanged."""
    return fn


def freeze(mod: F, *args: Any, **kwargs: Any) -> F:
    """Return a module unchanged."""
    return mod


def optimize_for_inference(mod: F, *args: Any, **kwargs: Any) -> F:
    """Return a module unchanged."""
    return mod


def trace_module(mod: F, inputs: Any = None, *args: Any, **kwargs: Any) -> F:
    """Return a module unchanged: every call of its methods runs all of them."""
    return mod


def interface(obj: F) -> F:
    """Return a class unchanged."""
    return obj


def Attribute(value: Any, type: Any) -> Any:  # noqa: N802 - PyTorch's name
    """Return a value unchanged."""
    return value


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function and return a future of its result: its tensors are computed meanwhile.

    >>> gt.jit.wait(gt.jit.fork(gt.exp, gt.zeros(1)))
    tensor([1.], dtype=float32)
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Return the result of a future of `fork`."""
    return future.result()


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return a value unchanged."""
    return the_value


def is_scripting() -> bool:
    """Return False: nothing is compiled as a script."""
    return False


def is_tracing() -> bool:
    """Return False: nothing is traced."""
    return False


globals().update(
    absent_names(
        __name__,
        "ScriptFunction ScriptModule load save",
        "the class or function itself; gt.save(model.state_dict(), path) saves its weights",
    )
)
show_callers(globals())
