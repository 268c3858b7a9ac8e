"""`flex_attention` on the device: PyTorch's list of its devices is extended by this one.

PyTorch computes it by ordinary operators, compiled or not, which the device has.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from typing import Any

_MODULE = "torch.nn.attention.flex_attention"


def register() -> None:
    """Extend the list now, or when PyTorch imports the module, which takes half a second."""
    if _MODULE in sys.modules:
        _extend(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the module as Python does, and extends the list after it is executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                _extend(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _extend(module: Any) -> None:
    """Wrap the check of devices; a release without it needs nothing."""
    otherwise = getattr(module, "_validate_device", None)
    if otherwise is None:
        return

    @functools.wraps(otherwise)
    def validate(query: Any, key: Any, value: Any) -> None:
        if query.device.type != "cluster":
            otherwise(query, key, value)

    module._validate_device = validate
