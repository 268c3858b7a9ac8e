"""Construction of modules without initialization."""

from __future__ import annotations

import inspect
from typing import Any

import gt
from gt import _gt

from ..module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """Return a new module whose parameters and buffers are uninitialized.

    Args:
        module_cls: a subclass of `gt.nn.Module`, whose constructor takes `device`.
        args: arguments of the constructor.
        kwargs: keyword arguments of the constructor.

    The state of the random number generator is as if no initial values had been drawn.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    state = _gt.random_state()
    module = module_cls(*args, **kwargs)
    _gt.set_random_state(*state)
    return module._apply(gt.empty_like)
