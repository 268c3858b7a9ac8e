"""Functions that are called before and after a module's forward and backward."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from gt._arguments import check_callable
from gt._gt import Tensor
from gt._public import show_callers
from gt.autograd import Function
from gt.func.tree import flatten, unflatten

__all__ = [
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
]


class RemovableHandle:
    """A handle that removes a hook: by `remove()`, or at the end of a `with` block over it."""

    _next = 0

    def __init__(self, hooks: dict[Any, Any], *others: dict[Any, Any]):
        self.id = RemovableHandle._next
        RemovableHandle._next += 1
        self._tables = [weakref.ref(table) for table in (hooks, *others)]

    def remove(self) -> None:
        """Remove the hook; it is not called any more."""
        for reference in self._tables:
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __getstate__(self) -> dict[str, Any]:
        return {"id": self.id, "_tables": [reference() for reference in self._tables]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.id = state["id"]
        tables = state["_tables"]
        self._tables = [weakref.ref(OrderedDict() if t is None else t) for t in tables]
        RemovableHandle._next = max(RemovableHandle._next, self.id + 1)


class Flagged:
    """A hook and how it was registered."""

    __slots__ = ("always", "function", "with_kwargs")

    def __init__(
        self, function: Callable[..., Any], with_kwargs: bool = False, always: bool = False
    ):
        self.function, self.with_kwargs, self.always = function, with_kwargs, always


def add_hook(hooks: OrderedDict[Any, Any], hook: Any, prepend: bool = False) -> RemovableHandle:
    """Add a hook to the end of a table, or to its front, and return its handle.

    Raises:
        TypeError: the hook cannot be called.
    """
    check_callable("hook", hook.function if isinstance(hook, Flagged) else hook)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class _Watch(Function):
    """The identity; in backward, `watch` receives all gradients and returns those to use."""

    @staticmethod
    def forward(ctx: Any, watch: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.watch = watch
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return (None, *ctx.watch(grads))


def watch_gradients(value: Any, watch: Callable[..., Any]) -> Any:
    """Return the same structure, with tensors whose gradients pass through `watch`.

    Args:
        value: tensors and other values, in nested tuples, lists and dicts.
        watch: receives a tuple with one gradient per leaf, None for leaves without one, and
            returns such a tuple.
    """
    leaves, structure = flatten(value)
    places = [
        place
        for place, leaf in enumerate(leaves)
        if isinstance(leaf, Tensor) and leaf.requires_grad
    ]
    if not places:
        return value
    count = len(leaves)

    def watch_all(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        given = dict(zip(places, grads, strict=True))
        changed = watch(tuple(given.get(place) for place in range(count)))
        return tuple(changed[place] for place in places)

    watched = _Watch.apply(watch_all, *(leaves[place] for place in places))
    for place, tensor in zip(places, watched, strict=True):
        leaves[place] = tensor
    return unflatten(leaves, structure)


#: Hooks for every module, by kind: the name of the table of a module's own hooks.
everywhere: dict[str, OrderedDict[Any, Any]] = {}


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a module's result, calling its own hooks and those for every module."""
    try:
        output = _call_watched(module, args, kwargs)
    except Exception:
        for hook in _all("_forward_hooks", module):
            if hook.always:
                _call_forward_hook(hook, module, args, kwargs, None)
        raise
    return output


def _call_watched(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for hook in _all("_forward_pre_hooks", module):
        args, kwargs = _call_pre_hook(hook, module, args, kwargs)
    pre_hooks = _all("_backward_pre_hooks", module)
    hooks = _all("_backward_hooks", module)
    backward = BackwardHooks(module, pre_hooks, hooks) if pre_hooks or hooks else None
    if backward is not None:
        args = backward.watch_inputs(args)
    output = module.forward(*args, **kwargs)
    for hook in _all("_forward_hooks", module):
        output = _call_forward_hook(hook, module, args, kwargs, output)
    return output if backward is None else backward.watch_output(output)


def _all(kind: str, module: Any) -> list[Any]:
    """Return the hooks of one kind: those for every module, then the module's own."""
    return [*everywhere.get(kind, {}).values(), *getattr(module, kind).values()]


def _call_pre_hook(
    hook: Flagged, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not hook.with_kwargs:
        changed = hook.function(module, args)
        if changed is None:
            return args, kwargs
        return changed if isinstance(changed, tuple) else (changed,), kwargs
    changed = hook.function(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(
            "a forward pre-hook with keyword arguments must return None or a tuple of "
            f"(args, kwargs), this one returned {changed!r}"
        )
    return changed


def _call_forward_hook(
    hook: Flagged, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> Any:
    given = (args, kwargs) if hook.with_kwargs else (args,)
    changed = hook.function(module, *given, output)
    return output if changed is None else changed


def _register_everywhere(kind: str, hook: Any) -> RemovableHandle:
    return add_hook(everywhere.setdefault(kind, OrderedDict()), hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, args) before each forward of every module."""
    return _register_everywhere("_forward_pre_hooks", Flagged(hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call hook(module, args, output) after each forward of every module."""
    return _register_everywhere("_forward_hooks", Flagged(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_output) before the backward of every module."""
    return _register_everywhere("_backward_pre_hooks", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) after the backward of every module."""
    return _register_everywhere("_backward_hooks", hook)


class BackwardHooks:
    """A module's backward hooks for one forward, called before and after its backward."""

    def __init__(
        self, module: Any, pre_hooks: list[Callable[..., Any]], hooks: list[Callable[..., Any]]
    ):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.grad_output: tuple[Any, ...] | None = None
        self.watches_inputs = False
        self.input_count = 0

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of forward, with gradients that pass through the hooks."""
        watched = watch_gradients(args, self._inputs_done) if self.hooks else args
        self.watches_inputs, self.input_count = watched is not args, len(args)
        return watched

    def watch_output(self, output: Any) -> Any:
        """Return the result of forward, with gradients that pass through the pre-hooks."""
        return watch_gradients(output, self._outputs_done)

    def _outputs_done(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.pre_hooks:
            grads = _replaced("full_backward_pre_hook", hook(self.module, grads), grads)
        self.grad_output = grads
        if not self.watches_inputs:
            for hook in self.hooks:
                if hook(self.module, (None,) * self.input_count, grads) is not None:
                    raise RuntimeError(
                        "a backward hook returned gradients for a module none of whose inputs "
                        "requires one: return None"
                    )
        return grads

    def _inputs_done(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            grads = _replaced(
                "full_backward_hook", hook(self.module, grads, self.grad_output), grads
            )
        return grads


def _replaced(what: str, given: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a hook returned as a tuple, or the gradients as they were if that is None."""
    if given is None:
        return grads
    given = given if isinstance(given, tuple) else (given,)
    if len(given) != len(grads):
        raise RuntimeError(
            f"{what} returned {len(given)} gradients, expected {len(grads)}, or None"
        )
    return given


show_callers(globals())
