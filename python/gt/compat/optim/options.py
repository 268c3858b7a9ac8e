"""The options of an optimizer, from the arguments of its constructor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: The default of options that must be given, in programs for PyTorch before version 2.
required: Any = object()


def options(arguments: dict[str, Any], first: Iterable[str] = ()) -> dict[str, Any]:
    """Return the options among the arguments of an optimizer's constructor, for `defaults`.

    Args:
        arguments: the constructor's `locals()`.
        first: the options to list first, where PyTorch lists them in another order than that of
            the arguments.
    """
    others = ("self", "params", "__class__")
    given = {name: value for name, value in arguments.items() if name not in others}
    return {**{name: given[name] for name in first}, **given}
