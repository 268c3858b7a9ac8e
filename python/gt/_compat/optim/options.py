"""The options of an optimizer, from the arguments of its constructor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

#: The default of options that must be given, in programs for PyTorch before version 2.
required: Any = object()


def options(arguments: dict[str, Any], first: Iterable[str] = ()) -> dict[str, Any]:
    """Return the options among the arguments of an optimizer's constructor, for `defaults`.

    `betas` become a tuple, as in PyTorch, so that the list of a configuration can be saved.

    Args:
        arguments: the constructor's `locals()`.
        first: the options to list first, where PyTorch lists them in another order than that of
            the arguments.
    """
    others = ("self", "params", "__class__")
    given = {name: value for name, value in arguments.items() if name not in others}
    if isinstance(given.get("betas"), Sequence):
        given["betas"] = tuple(given["betas"])
    return {**{name: given[name] for name in first}, **given}
