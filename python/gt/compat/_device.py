"""Devices: all tensors are on one, the cluster; the dispatcher decides on which workers."""

from __future__ import annotations

import sys
from typing import Any

_KINDS = ("cluster", "cpu", "cuda", "mps", "xpu", "meta")


class device:
    """A device as PyTorch names it, accepted wherever PyTorch programs pass one.

    Every tensor's device is `device("cluster")`. Other names are accepted and have no effect:
    signals and the dispatcher decide which workers compute. Tensors cannot be made on "meta", where
    PyTorch's have no values.

    Args:
        type: "cluster", "cpu", "cuda", "cuda:1", or another device, also of PyTorch's; an int means
            a "cuda" device.
        index: the number after the colon.

    >>> gt.ones(2).device
    device(type='cluster')
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any = "cluster", index: Any = None):
        if isinstance(type, device):
            index = type.index if index is None else index
            type = type.type
        elif is_torch_device(type):
            index = type.index if index is None else index
            type = type.type
        elif isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        elif not isinstance(type, str):
            raise TypeError(f"device: type must be a string, not {type!r}")
        kind, colon, number = type.partition(":")
        if kind not in _KINDS or (colon and not number.isdecimal()):
            raise RuntimeError(
                f"device: '{type}' is not known, expected one of {', '.join(_KINDS)}, "
                "with or without a number as in 'cuda:0'"
            )
        self.type = kind
        self.index = int(number) if colon else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


def check_target(given: Any) -> None:
    """Raise an error if tensors cannot be put on a device, passed as a `device` or its name."""
    if device(given).type == "meta":
        raise RuntimeError(
            "device: GT has no 'meta' device: every tensor has memory on the cluster\n"
            "  hint: leave the device out; creating layers is cheap, as it waits for nothing"
        )


def is_torch_device(given: Any) -> bool:
    """Return whether a value is a device of PyTorch's, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, getattr(torch, "device", ()))


CLUSTER = device("cluster")


def is_device(given: Any) -> bool:
    """Return whether a value is a device or the name of one."""
    if isinstance(given, device) or is_torch_device(given):
        return True
    return isinstance(given, str) and given.partition(":")[0] in _KINDS
