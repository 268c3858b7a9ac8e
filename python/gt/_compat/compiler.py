"""Functions of PyTorch's compiler besides `compile`; they have no effect."""

from __future__ import annotations

from typing import Any

from gt._public import show_callers

__all__ = ["allow_in_graph", "cudagraph_mark_step_begin", "disable", "is_compiling", "reset"]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function unchanged: `@gt.compiler.disable`, with or without arguments."""
    return fn if callable(fn) else lambda fn: fn


def allow_in_graph(fn: Any) -> Any:
    """Return a function unchanged."""
    return fn


def is_compiling() -> bool:
    """Return False: every call of a program runs it."""
    return False


def reset() -> None:
    """Do nothing: compiled code depends on nothing that a program could change."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: the beginning of a step is detected."""


show_callers(globals())
