"""Threads that import modules of a package while another thread imports the package wait for it.

Python does not: it runs such a module at once, which would find half of the package.
"""

from __future__ import annotations

import _frozen_importlib
import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from threading import get_ident
from types import ModuleType
from typing import Any


def create_module(spec: ModuleSpec) -> ModuleType | None:
    """Wait until a module's package is imported; return what the module's own loader returns.

    A module of another name of `gt` is that of `gt`.

    Args:
        spec: the spec of the module; it becomes that which Python's own finder returns.
    """
    first, _, rest = spec.name.partition(".")
    if first != "gt":
        module = importlib.import_module(f"gt.{rest}")
        spec.loader = _Imported(module.__spec__)
        return module
    # The thread that imports the package may need the modules whose locks this one holds.
    locks = _held_locks()
    for lock in locks:
        lock.release()
    try:
        package = importlib.import_module(spec.name.rpartition(".")[0])
    finally:
        for lock in locks:
            lock.acquire()
    if spec.name in sys.modules:
        module = sys.modules[spec.name]
        spec.loader = _Imported(module.__spec__)
        return module
    found = PathFinder.find_spec(spec.name, package.__path__)
    if found is None or found.loader is None:
        raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
    vars(spec).update(vars(found))
    return found.loader.create_module(found)


class _Imported(Loader):
    """The loader of a module that is imported already: it keeps the module's spec."""

    def __init__(self, spec: ModuleSpec | None):
        self._spec = spec

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def _held_locks() -> list[Any]:
    """Return the locks of modules of `gt` that this thread holds, packages before their modules.

    In this order they can be taken again while another thread imports the package.
    """
    locks = _frozen_importlib._module_locks  # type: ignore[attr-defined]
    names = sorted(name for name in list(locks) if name.startswith("gt."))
    found = [locks[name]() for name in names if name in locks]
    return [lock for lock in found if lock and lock.owner == get_ident()]
