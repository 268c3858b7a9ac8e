"""The wrapper that `gt.compile` returns for a module."""

from __future__ import annotations

import copy
from typing import Any

from gt._compile import hot

from .module import Module

#: Attributes of the wrapper itself; all others are the wrapped module's.
_OWN = ("_orig_mod", "_run", "_name", "_marks")


class OptimizedModule(Module):
    """A wrapper that makes a module, `_orig_mod`, hot and forwards attributes to it.

    Names in its state begin with `_orig_mod.`, as in PyTorch. `module.compile()` makes a module hot
    without a wrapper.
    """

    def __init__(self, mod: Module, name: str | None = None, marks: bool = True):
        super().__init__()
        self._modules["_orig_mod"] = mod
        told = name or type(mod).__qualname__
        own = {"_run": hot(mod.__call__, told) if marks else mod, "_name": name, "_marks": marks}
        self.__dict__.update(own)
        self.__dict__.pop("training", None)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result."""
        return self._run(*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module is being trained."""
        return self._modules["_orig_mod"].training

    @training.setter
    def training(self, value: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._modules["_orig_mod"].training = value

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod" or "_orig_mod" not in modules:
            return super().__getattr__(name)
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        started = "_orig_mod" in self.__dict__.get("_modules", ())
        if not started or name in _OWN or hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN or hasattr(type(self), name):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> tuple[Any, ...]:
        return OptimizedModule, (self._orig_mod, self._name, self._marks)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo), self._name, self._marks)
