"""Functions of other packages, replaced by ones that convert GT's tensors first."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gt

Function = Callable[..., Any]


def replace(package: ModuleType, name: str, decorate: Callable[[Function], Function]) -> None:
    """Replace a function in each module of a package that has it under its own name."""
    replaced: dict[Function, Function] = {}
    for module_name, module in list(sys.modules.items()):
        if (module_name + ".").startswith(package.__name__ + "."):
            own = vars(module).get(name)
            if isinstance(own, type(replace)):
                setattr(module, name, replaced.setdefault(own, decorate(own)))


def converting(convert: Callable[[gt.Tensor], Any]) -> Callable[[Function], Function]:
    """Return a decorator of functions, whose arguments are converted if they are tensors."""

    def converted(value: Any) -> Any:
        return convert(value) if isinstance(value, gt.Tensor) else value

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            named = {name: converted(value) for name, value in options.items()}
            return function(*map(converted, args), **named)

        return call

    return decorate
