"""Decorators of PyTorch's script compiler; functions and modules stay unchanged.

GT finds and compiles repeated sequences without them; see `gt.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gt._public import show_callers

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["export", "ignore", "is_scripting", "is_tracing", "script", "trace", "unused"]


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


def is_scripting() -> bool:
    """Return False: nothing is compiled as a script."""
    return False


def is_tracing() -> bool:
    """Return False: nothing is traced."""
    return False


show_callers(globals())
