"""Structures of tensors as they are sent to a server: what is kept, and what is published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gt import _gt


def pack(value: Any, call: str) -> tuple[bytes, list[_gt.Tensor]]:
    """Return what surrounds the tensors of a structure, and the tensors.

    Args:
        value: tensors, numbers, strings, and containers of them, as for `gt.save`.
        call: the function that messages name.

    Raises:
        TypeError: the structure contains an unsupported value; the message says where.
        ValueError: a container contains itself, or is nested too deep.
    """
    from gt.formats.structure import describe

    text, tensors = describe(value, call)
    structure = json.dumps([[name for name, _ in tensors], text]).encode()
    return structure, [tensor for _, tensor in tensors]


def unpack(structure: bytes, tensors: Sequence[_gt.Tensor], where: str) -> Any:
    """Return a structure that was packed, with these tensors; `where` names it in messages.

    Raises:
        ValueError: it was not packed by `pack`.
    """
    from gt.formats.structure import rebuild

    names, text = json.loads(structure)
    by_name = dict(zip(names, tensors, strict=True))
    return rebuild(text, by_name.__getitem__, where)


def checked_name(call: str, name: Any, example: str) -> str:
    """Return a name that is a string.

    Raises:
        TypeError: it is something else; the message names the function, and has an example.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"{call}: the name is {name!r}, expected a string\n  hint: gt.{call}({example!r})"
        )
    return name
