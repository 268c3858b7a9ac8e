"""Names of PyTorch that programs import at their top, and that GT does not have.

The import succeeds, so that a program which does not use the name runs; using it raises.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NoReturn

from gt._gt import public_function


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
    public = staticmethod(public_function(refuse))
    doc = f"Not available: calling it raises NotImplementedError; {hint}."
    return type(own, (), {"__new__": public, "__module__": module, "__doc__": doc})


def absent_names(module: str, names: str, hint: str) -> dict[str, Any]:
    """Return `absent` for some names of a module, separated by spaces, by name."""
    return {name: absent(f"{module}.{name}", hint) for name in names.split()}


def add_absent_modules(package: str, names: Mapping[str, str], hint: str) -> None:
    """Add modules of such names to a package that is being imported.

    Args:
        package: the name of the package, such as "gt.distributed".
        names: for each module, the names in it, separated by spaces.
        hint: what to write instead.
    """
    for path, own in names.items():
        module = ModuleType(f"{package}.{path}", f"Not available: {hint}.")
        module.__dict__.update(absent_names(module.__name__, own, hint))
        sys.modules[module.__name__] = module
        within, _, name = path.rpartition(".")
        setattr(sys.modules[f"{package}.{within}" if within else package], name, module)
