"""`gt.compile`: mark a function or module as a hot path."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, overload

from gt import _gt, config
from gt.ops.annotations import F

#: The backends that use the compiler of the workers' engine.
_COMPILERS = ("inductor", "cudagraphs")
#: The backends that run a function as it is.
_PLAIN = ("eager", "aot_eager")

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")

#: Options of PyTorch's compiler that do not affect results, and the type of each.
_OPTIONS: dict[str, type] = {
    "epilogue_fusion": bool,
    "max_autotune": bool,
    "shape_padding": bool,
    "triton.cudagraphs": bool,
    "trace.enabled": bool,
    "trace.graph_diagram": bool,
    "fallback_random": bool,  # Compiled code draws the same random numbers anyway.
}

_inside = threading.local()


@overload
def compile(
    model: F,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
) -> F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
) -> Callable[[F], F]: ...
def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
) -> Any:
    """Mark a function or module as hot: from its second call on, it is sent and run as one plan.

    Repeated sequences that are not marked are found as well, after three rounds. Results are those
    of the plain function: its Python code runs at every call, so nothing is traced and no argument
    is frozen. Calls with varying shapes run operation by operation. See docs/hot-paths.md.

    Args:
        model: a function, or a module, which is wrapped in an `OptimizedModule`; if None, a
            decorator is returned.
        fullgraph: accepted for compatibility: no graph is traced, so there are no graph breaks.
        dynamic: accepted for compatibility: nothing is compiled for varying shapes.
        backend: "inductor" or "cudagraphs" for the compiler of the workers' engine; "eager" or
            "aot_eager" to run the function as it is.
        mode: one of PyTorch's modes, accepted for compatibility: the engine decides.
        options: PyTorch's options, of which only those that do not affect results are accepted.
        name: the name in the log; the function's name by default.
        disable: whether to return the function as it is.

    Raises:
        RuntimeError: the backend, mode or option does not exist.

    >>> @gt.compile
    ... def double(x):
    ...     return x * 2
    >>> double(gt.ones(1))
    tensor([2.], dtype=float32)
    """
    _check(fullgraph, dynamic, mode, options)
    if model is None:
        return functools.partial(
            compile, backend=backend, mode=mode, options=options, name=name, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile: {model!r} is not callable, expected a function or a module")
    marks = _is_compiler(backend)
    if disable:
        return model
    from gt.nn.compiled import OptimizedModule
    from gt.nn.module import Module

    if isinstance(model, Module):
        return OptimizedModule(model, name, marks)
    return hot(model, name) if marks else model


def hot(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Return a function that runs in its own signal scope, which is compiled."""
    told = name or getattr(function, "__qualname__", type(function).__qualname__)
    signal = f"compile:{told}"
    config.register_compiled(signal)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "hot", False):
            return function(*args, **kwargs)  # Part of the enclosing hot function.
        depth = _gt.signal_enter(signal, None)
        _inside.hot = True
        try:
            return function(*args, **kwargs)
        finally:
            _inside.hot = False
            _gt.signal_unwind(depth)

    return call


def _is_compiler(backend: Any) -> bool:
    """Return whether a backend compiles.

    Raises:
        TypeError: the backend is a function.
        RuntimeError: no backend has this name.
    """
    if backend is None or backend in _COMPILERS:
        return True
    if backend in _PLAIN:
        return False
    if callable(backend):
        raise TypeError(
            "compile: backend is a function, but GT traces no graph to pass to it\n  hint: "
            "leave it out, or change the model itself; an engine of your own compiles plans"
        )
    raise RuntimeError(
        f"Invalid backend: {backend!r}, should be one of: {', '.join(_COMPILERS + _PLAIN)}"
    )


def _check(fullgraph: Any, dynamic: Any, mode: Any, options: Any) -> None:
    if not isinstance(fullgraph, bool):
        raise TypeError(f"compile: fullgraph is {fullgraph!r}, expected True or False")
    if dynamic is not None and not isinstance(dynamic, bool):
        raise TypeError(f"compile: dynamic is {dynamic!r}, expected True, False or None")
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    for key, value in (options or {}).items():
        kind = _OPTIONS.get(key.replace("-", "_"))
        if kind is None:
            raise RuntimeError(
                f"Unexpected optimization option {key}, known options are {list(_OPTIONS)}"
            )
        if not isinstance(value, kind):
            raise RuntimeError(
                f"Unexpected type of attr {key}, got {type(value).__name__} should be "
                f"{kind.__name__}"
            )
