"""Module paths of PyTorch's whose contents GT has in modules of other names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def add_modules(
    package: str, contents: Mapping[str, str], parent: ModuleType | None = None
) -> None:
    """Add modules to a package, with the names of the modules that GT has them in.

    Args:
        package: the name of the package, such as "gt.nn.modules".
        contents: for the name of each module, the names of GT's modules, separated by spaces.
        parent: the module whose attributes they become; by default the one of the package's name.
    """
    for path, sources in contents.items():
        module = ModuleType(f"{package}.{path}", f"The names of {sources} as PyTorch has them.")
        for source in sources.split():
            module.__dict__.update(_names(import_module(source)))
        sys.modules[module.__name__] = module
        within, _, name = path.rpartition(".")
        owner = sys.modules[f"{package}.{within}"] if within else parent or sys.modules[package]
        setattr(owner, name, module)


def _names(module: ModuleType) -> dict[str, Any]:
    """Return what a module has, without its own description."""
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}
