"""Signals: named scopes that control how the dispatcher places tensors and computation.

    with gt.signal.context("layer1", backward="layer1_backward"):
        y = x @ w

A configuration (`gt.load_config`, `gt.register_config`) defines what a name means. A name without
one is ignored, so the same code runs anywhere. Each thread has its own scopes.

`gt.signal.windows` is `torch.signal.windows`, which is unrelated to these signals.
"""

import sys
import types
from collections.abc import Iterator
from contextlib import AbstractContextManager, _GeneratorContextManager, contextmanager

from gt import _gt
from gt._arguments import brief
from gt._gt import Tensor
from gt._public import show_callers
from gt.signal import windows

__all__ = [
    "context",
    "current_backward_signal",
    "current_signal",
    "enter",
    "exit",
    "tensor",
    "windows",
]


def context(name: str, backward: str | None = None) -> _GeneratorContextManager[None]:
    """Run a block in the scope of a signal; its backward pass runs under `backward`."""
    _check_names(name=name, backward=backward)
    return _scope(name, backward)


def _check_names(**names: str | None) -> None:
    """Check that names of signals are strings; others than `name` may be None."""
    for what, given in names.items():
        if not isinstance(given, str) and (given is not None or what == "name"):
            raise TypeError(f"{what} is {brief(given)}, expected the name of a signal")


@contextmanager
def _scope(name: str, backward: str | None) -> Iterator[None]:
    depth = _gt.signal_enter(name, backward)
    left = False
    try:
        yield
        left = True
    finally:
        try:
            # Scopes that an exception left open are not an error.
            if left:
                _gt.signal_exit(name)
        finally:
            _gt.signal_unwind(depth)


def enter(name: str, backward: str | None = None) -> None:
    """Open a scope until `exit(name)`."""
    _check_names(name=name, backward=backward)
    _gt.signal_enter(name, backward)


def exit(name: str) -> None:
    """Close the innermost scope, which must be `name`."""
    _check_names(name=name)
    _gt.signal_exit(name)


def tensor(x: Tensor, name: str, backward_name: str | None = None) -> Tensor:
    """Return a copy of a tensor, placed according to the signal's configuration."""
    _check_names(name=name, backward_name=backward_name)
    if not isinstance(x, Tensor):
        raise TypeError(f"x is {brief(x)}, expected a tensor")
    return _gt.signal_tensor(x, name, backward_name)


def current_signal() -> str | None:
    """Return the name of this thread's innermost signal scope, or None."""
    return _gt.signal_current()[0]


def current_backward_signal() -> str | None:
    """Return the signal under which the innermost scope's backward pass runs, or None."""
    name, backward = _gt.signal_current()
    if backward is None and name is not None:
        from gt.config import get_signal_config

        config = get_signal_config(name)
        return config.backward_signal if config else None
    return backward


class _SignalModule(types.ModuleType):
    """A module that can be called: `with gt.signal("name"):`."""

    def __call__(self, name: str, backward: str | None = None) -> AbstractContextManager[None]:
        return context(name, backward)


sys.modules[__name__].__class__ = _SignalModule

show_callers(globals())
