"""Functions of PyTorch's compiler; besides `compile` and `wrap_numpy` they have no effect."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from gt._compile import compile
from gt._gt import Tensor
from gt._public import show_callers
from gt.func.tree import mapped
from gt.ops.foreign import to_tensor

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "nested_compile_region",
    "reset",
    "set_stance",
    "wrap_numpy",
]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function unchanged: `@gt.compiler.disable`, with or without arguments."""
    return fn if callable(fn) else lambda fn: fn


def allow_in_graph(fn: Any) -> Any:
    """Return a function unchanged."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return a function unchanged: each call runs it, so its result may also vary."""
    return fn


def nested_compile_region(fn: Any = None) -> Any:
    """Return a function unchanged: repeated sequences are found without marks."""
    return fn if callable(fn) else lambda fn: fn


def is_compiling() -> bool:
    """Return False: every call of a program runs it."""
    return False


def is_dynamo_compiling() -> bool:
    """Return False: every call of a program runs it."""
    return False


def is_exporting() -> bool:
    """Return False: programs are not exported."""
    return False


def reset() -> None:
    """Do nothing: compiled code depends on nothing that a program could change."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: the beginning of a step is detected."""


class set_stance(contextlib.ContextDecorator):
    """Do nothing, as a call, a `with` block or a decorator: no stance changes what is computed.

    Args:
        stance: one of PyTorch's, such as `"default"` or `"force_eager"`.
        options: PyTorch's options.
    """

    def __init__(self, stance: str = "default", **options: Any):
        known = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")
        if stance not in (*known, "eager_then_compile", "aot_eager_then_compile"):
            raise RuntimeError(
                f"set_stance: stance is {stance!r}, expected one of {', '.join(map(repr, known))}"
            )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that calls one of NumPy arrays; no gradients flow through it.

    >>> import numpy as np
    >>> gt.compiler.wrap_numpy(lambda x: np.flip(x).copy())(gt.tensor([1.0, 2.0]))
    tensor([2., 1.], dtype=float32)
    """

    def array(value: Any) -> Any:
        return value.detach().numpy() if isinstance(value, Tensor) else value

    def tensor(value: Any) -> Any:
        return to_tensor(value) if hasattr(value, "__array__") else value

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return mapped(tensor, fn(*mapped(array, args), **mapped(array, kwargs)))

    return call


show_callers(globals())
