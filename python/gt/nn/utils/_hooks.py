"""Hooks that compute one tensor of a module before each forward."""

from __future__ import annotations

from typing import Any

from gt.nn.module import Module


def find_hooks(module: Module, kind: Any, name: str) -> list[tuple[int, Any]]:
    """Give the hooks of a class before a module's forward that are for a tensor, by their keys."""
    hooks: Any = ((key, hook.function) for key, hook in module._forward_pre_hooks.items())
    return [(key, hook) for key, hook in hooks if isinstance(hook, kind) and hook.name == name]


def need_no_hook(module: Module, kind: Any, name: str, what: str) -> None:
    """Raise if there is such a hook for a tensor."""
    if find_hooks(module, kind, name):
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {name}")


def remove_hook(module: Module, kind: Any, name: str, what: str) -> None:
    """Remove such a hook, and make the tensor a parameter again."""
    found = find_hooks(module, kind, name)
    if not found:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    key, hook = found[0]
    hook.remove(module)
    del module._forward_pre_hooks[key]
