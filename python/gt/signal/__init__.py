"""Signals: named scopes that tell the dispatcher how to place tensors and computation.

    with gt.signal.context("layer1", backward="layer1_backward"):
        y = x @ w

What a name means stands in a configuration (`gt.load_config`, `gt.register_config`). A name
without one is ignored, so the same code runs anywhere. Each thread has its own scopes.

`gt.signal.windows` is `torch.signal.windows`, which has nothing to do with these.
"""

import sys
import types
from contextlib import contextmanager

from gt import _gt
from gt._gt import Tensor
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


@contextmanager
def context(name: str, backward: str | None = None):
    """Run a block under a signal; its gradients run under `backward`."""
    depth = _gt.signal_enter(name, backward)
    left = False
    try:
        yield
        left = True
    finally:
        try:
            # After an error, scopes that it left open are no mistake.
            if left:
                _gt.signal_exit(name)
        finally:
            _gt.signal_unwind(depth)


def enter(name: str, backward: str | None = None) -> None:
    """Open a scope until `exit(name)`."""
    _gt.signal_enter(name, backward)


def exit(name: str) -> None:
    """Close the innermost scope, which must be `name`."""
    _gt.signal_exit(name)


def tensor(x: Tensor, name: str, backward_name: str | None = None) -> Tensor:
    """Give a copy of a tensor, placed as the signal says."""
    return _gt.signal_tensor(x, name, backward_name)


def current_signal() -> str | None:
    """Name the innermost scope's signal on this thread."""
    return _gt.signal_current()[0]


def current_backward_signal() -> str | None:
    """Name the signal under which the innermost scope's gradients run."""
    name, backward = _gt.signal_current()
    if backward is None and name is not None:
        from gt.config import get_signal_config

        config = get_signal_config(name)
        return config.backward_signal if config else None
    return backward


class _SignalModule(types.ModuleType):
    """Lets the module itself be called: `with gt.signal("name"):`."""

    def __call__(self, name: str, backward: str | None = None):
        return context(name, backward)


sys.modules[__name__].__class__ = _SignalModule
