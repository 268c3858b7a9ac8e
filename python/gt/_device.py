"""Devices: all tensors are on one, the cluster; where on it is the dispatcher's matter."""

from __future__ import annotations

from typing import Any

_KINDS = ("cluster", "cpu", "cuda", "mps", "xpu", "meta")


class device:
    """A device as PyTorch names it, accepted wherever PyTorch programs say one.

    Every tensor's device is `device("cluster")`. Other names are taken and change nothing: which
    worker computes, and on what, is up to signals and the dispatcher. No tensor can be made on
    "meta", where PyTorch's have no values.

    Args:
        type: "cluster", "cpu", "cuda", "cuda:1", or another device.
        index: the number that stands after the colon.

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
    """Raise an error unless tensors can be put on a device, or on what names one."""
    if device(given).type == "meta":
        raise RuntimeError(
            "device: GT has no 'meta' device, a tensor has memory on the cluster\n"
            "  hint: leave the device out; layers are cheap to make, as nothing is waited for"
        )


CLUSTER = device("cluster")


def is_device(given: Any) -> bool:
    """Say whether something names a device."""
    if isinstance(given, device):
        return True
    return isinstance(given, str) and given.partition(":")[0] in _KINDS
