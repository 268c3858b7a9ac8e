"""Names of PyTorch that programs import at their top, and that GT does not have.

The import succeeds, so that a program which does not use the name runs; using it raises.
"""

from __future__ import annotations

from typing import Any, NoReturn


def absent(name: str, hint: str) -> Any:
    """Return a class of which there is no instance, to stand for a class or function.

    Args:
        name: the name that users write, such as "gt.onnx.export".
        hint: what to write instead.

    Raises:
        NotImplementedError: when the class is called.
    """

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: GT does not have it\n  hint: {hint}")

    module, _, own = name.rpartition(".")
    doc = f"Not available: calling it raises NotImplementedError; {hint}."
    return type(own, (), {"__new__": refuse, "__module__": module, "__doc__": doc})


def absent_names(module: str, names: str, hint: str) -> dict[str, Any]:
    """Return `absent` for some names of a module, separated by spaces, by name."""
    return {name: absent(f"{module}.{name}", hint) for name in names.split()}
