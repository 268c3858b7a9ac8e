"""Checkpointing: activations are recomputed in the backward pass instead of kept."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from gt._public import show_callers
from gt.autograd import is_grad_enabled
from gt.nn.containers import Sequential

from ._recomputed import Call, CheckpointError

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing, for the forward pass and for recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def create_selective_checkpoint_contexts(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Raise NotImplementedError: policies by operation are not supported."""
    raise NotImplementedError(
        "create_selective_checkpoint_contexts: policies that keep the results of some operations "
        "(context_fn with a CheckpointPolicy) are not supported\n"
        "  hint: call checkpoint() on those parts only whose results are to be recomputed"
    )


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping its intermediate results; the backward pass recomputes them.

    Gradients are bit for bit the same as without it, at the price of a second forward pass.

    Args:
        function: the function or module to call; it must compute the same each time. It may use
            parameters that are not among its arguments.
        args: positional arguments of any kind; tensors may be inside lists, tuples and dicts.
        use_reentrant: accepted for compatibility with PyTorch: the results are always those of
            `use_reentrant=False`.
        preserve_rng_state: draw the same random numbers again, such as for dropout. The function
            itself must seed generators of the program.
        context_fn: returns two contexts: one for the forward pass, one for recomputation.
        determinism_check: "default" compares shapes and dtypes of the results; "none" does not.
        debug: as `set_checkpoint_debug_enabled(True)` around the call.
        early_stop: accepted for compatibility with PyTorch; all of the function is recomputed.
        kwargs: keyword arguments of the function.

    Returns:
        The result of the function. Without a function, a decorator with these options.

    Raises:
        CheckpointError: in the backward pass, the results have other shapes or dtypes.

    Parameters are found in modules, closures, globals and attributes that the function refers to.
    If the function uses a tensor that is computed from others and not an argument, or a parameter
    that is not found, its intermediate results are kept, with a warning: pass it as an argument.

    >>> layer = gt.nn.Sequential(gt.nn.Linear(2, 8), gt.nn.Tanh(), gt.nn.Linear(8, 2))
    >>> x = gt.ones(1, 2, requires_grad=True)
    >>> gt.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    >>> x.grad.shape
    (1, 2)
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: determinism_check is {determinism_check!r}, expected 'default' or 'none'"
        )
    if function is None:
        if args or kwargs:
            raise ValueError("checkpoint: there are arguments, but no function")
        options = {"preserve_rng_state": preserve_rng_state, "context_fn": context_fn}
        told = {"determinism_check": determinism_check, "debug": debug}
        return functools.partial(_decorated, options={**options, **told})
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    call = Call(function, args, kwargs, recompute_context, preserve_rng_state)
    call.checks = determinism_check == "default"
    call.debug = _Modes.debug if _Modes.debug is not None else debug
    with forward_context:
        return call.forward()


class _Modes:
    """The settings of the `set_checkpoint_...` blocks."""

    debug: bool | None = None


def _decorated(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """Return a function whose calls are checkpointed."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(function, *args, **options, **kwargs)

    return wrapped


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call functions one after another in segments, of which all but the last are checkpointed.

    Args:
        functions: a `gt.nn.Sequential`, or a list of functions of one argument.
        segments: the number of segments.
        input: the argument of the first function.
        use_reentrant: as for `checkpoint`.
        kwargs: `preserve_rng_state`, as for `checkpoint`.

    >>> model = gt.nn.Sequential(*[gt.nn.Linear(2, 2) for _ in range(4)])
    >>> gt.utils.checkpoint.checkpoint_sequential(model, 2, gt.ones(1, 2)).shape
    (1, 2)
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    listed = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    if not 1 <= segments <= len(listed):
        raise ValueError(
            f"checkpoint_sequential: segments is {segments}, expected 1 to {len(listed)}, the "
            "number of functions"
        )
    size = len(listed) // segments
    for start in range(0, size * (segments - 1), size):
        segment = _Chain(listed[start : start + size])
        input = checkpoint(segment, input, preserve_rng_state=preserve)
    return _Chain(listed[size * (segments - 1) :])(input)


class _Chain:
    """Functions that are applied one after another."""

    def __init__(self, functions: list[Callable[..., Any]]):
        self.functions = functions

    def __call__(self, value: Any) -> Any:
        for function in self.functions:
            value = function(value)
        return value


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Make errors of checkpoints in a block list each difference; None: as their `debug` says."""
    before, _Modes.debug = _Modes.debug, enabled
    try:
        yield
    finally:
        _Modes.debug = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Do nothing: all of a function is always recomputed."""
    yield


show_callers(globals())
