"""Parts of a model whose activations are computed again in the backward pass, not kept."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from gt.autograd import is_grad_enabled
from gt.nn.containers import Sequential
from gt.utils._recomputed import Call, CheckpointError

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
    """Return two contexts that do nothing, for the forward pass and for computing again."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def create_selective_checkpoint_contexts(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Say that a policy by operation is not supported: all of a function is computed again."""
    raise NotImplementedError(
        "create_selective_checkpoint_contexts: policies that keep the results of some operations "
        "(context_fn with a CheckpointPolicy) are not supported\n"
        "  hint: checkpoint() the parts alone whose results are to be computed again"
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
    """Call a function whose intermediate results are not kept: the backward pass computes again.

    Gradients are the same as without it, bit for bit, at the price of a second forward pass.

    Args:
        function: what is called; it must compute the same again. It may be a module, and may use
            parameters that are not among its arguments.
        args: its arguments, of any kind; tensors may stand in lists, tuples and dicts.
        use_reentrant: accepted for PyTorch's programs: there is one way, whose results are those of
            `use_reentrant=False`.
        preserve_rng_state: draw the same random numbers again, as for dropout. Generators of the
            program's own must be set by the function itself.
        context_fn: gives two contexts: one for the forward pass, one for computing again.
        determinism_check: "default" compares shapes and dtypes of the results; "none" does not.
        debug: as `set_checkpoint_debug_enabled(True)` around the call.
        early_stop: accepted for PyTorch's programs; all of the function is computed again.
        kwargs: the function's arguments by name.

    Returns:
        What the function gives. Without a function, a decorator that has the options.

    Raises:
        CheckpointError: in the backward pass, results of other shapes or dtypes.

    Parameters are found in modules, closures, globals and attributes that the function refers to.
    Where it uses a tensor that is computed from others and not an argument, or a parameter that is
    not found, it is called as without `checkpoint`, with a warning: pass it as an argument.

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
            raise ValueError("checkpoint: arguments are given, but no function")
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
    """What the `set_checkpoint_...` blocks have set."""

    debug: bool | None = None


def _decorated(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """Return a function each of whose calls is checkpointed."""

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
        segments: how many segments there are.
        input: what the first one gets.
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
    """Functions one after another."""

    def __init__(self, functions: list[Callable[..., Any]]):
        self.functions = functions

    def __call__(self, value: Any) -> Any:
        for function in self.functions:
            value = function(value)
        return value


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Have errors of checkpoints in a `with` block name each difference; None leaves it to them."""
    before, _Modes.debug = _Modes.debug, enabled
    try:
        yield
    finally:
        _Modes.debug = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Change nothing: all of a function is computed again, and results do not depend on it."""
    yield
