"""What programs tell PyTorch's compiler besides `compile`: it changes nothing here."""

from __future__ import annotations

from typing import Any

__all__ = ["cudagraph_mark_step_begin", "disable", "is_compiling", "reset"]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function as it is: `@gt.compiler.disable`, with or without arguments."""
    return fn if callable(fn) else lambda fn: fn


def is_compiling() -> bool:
    """Say that the program is not being compiled: it always runs."""
    return False


def reset() -> None:
    """Do nothing: what was compiled depends on nothing that a program could change."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: where a step begins is found."""
