"""Helpers for hooks that compute one tensor of a module before each forward."""

from __future__ import annotations

from typing import Any

from ..module import Module


def find_hooks(module: Module, kind: Any, name: str) -> list[tuple[int, Any]]:
    """Return the forward pre-hooks of a class that compute a tensor, with their keys."""
    hooks: Any = ((key, hook.function) for key, hook in module._forward_pre_hooks.items())
    return [(key, hook) for key, hook in hooks if isinstance(hook, kind) and hook.name == name]


def need_no_hook(module: Module, kind: Any, name: str, what: str) -> None:
    """Raise RuntimeError if a hook of a class already computes a tensor."""
    if find_hooks(module, kind, name):
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {name}")


def remove_hook(module: Module, kind: Any, name: str, what: str) -> None:
    """Remove the hook of a class that computes a tensor, and make the tensor a parameter again."""
    found = find_hooks(module, kind, name)
    if not found:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    key, hook = found[0]
    hook.remove(module)
    del module._forward_pre_hooks[key]
