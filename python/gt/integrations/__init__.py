"""Other packages that take GT's tensors, and what GT adds to them when they are imported.

Most packages need nothing of this: they take tensors through protocols that `Tensor` has, such as
`__array__`, `__dlpack__`, `__arrow_array__` and `to_numpy`. A package that recognizes tensors by
their type is extended by a module of this folder, directly after its import. The package itself is
never imported by GT.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: The modules that are extended, each with the module whose `extend(module)` does it.
EXTENDED = {
    "einops._backends": "gt.integrations.einops",
    "polars": "gt.integrations.polars",
    "tensorboardX": "gt.integrations.tensorboard",
    "torch.utils.tensorboard": "gt.integrations.tensorboard",
    "wandb": "gt.integrations.wandb",
}

#: Modules that are added to other packages, each with the module whose public names it has.
ADDED = {"einops.layers.gt": "gt.integrations.einops_layers"}


class Finder:
    """A finder of modules that extends those of `EXTENDED` and finds those of `ADDED`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of the tables, and None for all others."""
        if name in ADDED:
            loader: Any = _Added()
            return ModuleSpec(name, loader, origin=ADDED[name])
        if name not in EXTENDED:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Extended(spec.loader)
                return spec
        return None


class _Extended:
    """A loader that loads a module with its own loader and then extends it."""

    def __init__(self, own: Any):
        self.own = own

    def __getattr__(self, name: str) -> Any:
        # What else loaders have: `runpy` asks for code, for example.
        return getattr(self.own, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.own
        if module.__spec__ is not None:
            module.__spec__.loader = self.own
        self.own.exec_module(module)
        extend(module)


class _Added:
    """A loader of a module that has the public names of another."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        own = importlib.import_module(ADDED[module.__name__])
        vars(module).update({name: getattr(own, name) for name in own.__all__})
        module.__doc__ = own.__doc__


def extend(module: ModuleType) -> None:
    """Extend a module of `EXTENDED`. If that fails, its import must not: a warning says so."""
    try:
        importlib.import_module(EXTENDED[module.__name__]).extend(module)
    except Exception as error:
        package = module.__name__.partition(".")[0]
        warnings.warn(
            f"{package} cannot be extended for tensors of gt: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def install() -> None:
    """Extend the modules that are imported, and each other one when it is imported."""
    sys.meta_path.insert(0, Finder())
    for name, extension in EXTENDED.items():
        add(name, extension)


def add(name: str, extension: str) -> None:
    """Let `extension` extend the module `name`: now if it is imported, or after its import."""
    EXTENDED[name] = extension
    module = sys.modules.get(name)
    if module is not None:
        extend(module)
