"""Devices: all tensors are on one, the cluster; the dispatcher decides on which workers."""

from __future__ import annotations

import functools
import sys
from typing import Any

from gt import _gt
from gt._lines import warn

#: The kinds of devices that are GPUs.
_GPUS = ("cuda", "mps", "xpu")
#: The kinds of devices.
DEVICES = ("cluster", "cpu", "cuda", "mps", "xpu", "meta")


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
            if index < 0:
                raise RuntimeError(f"the number of the device is {index}, expected 0 or more")
        elif not isinstance(type, str):
            raise TypeError(f"device: type must be a string, not {type!r}")
        kind, colon, number = type.partition(":")
        if kind not in DEVICES or (colon and not number.isdecimal()):
            raise RuntimeError(
                f"device: '{type}' is not known, expected one of {', '.join(DEVICES)}, "
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

    def __enter__(self) -> device:
        """Check the device, as `gt.set_default_device`; in the block it has no effect."""
        check_target(self)
        return self

    def __exit__(self, *error: object) -> None:
        pass


def check_target(given: Any) -> None:
    """Check a device, passed as a `device` or its name, that a program puts tensors on.

    Tensors cannot be put on "meta", which is an error. If it is a GPU, and neither a server nor
    this process has one, or none of this number, a warning says so, once.
    """
    of = device(given)
    kind = of.type
    if of.index:
        check_index(of)
    if kind in _GPUS:
        _warn_without_gpu(kind)
    if kind == "meta":
        raise RuntimeError(
            "device: GT has no 'meta' device: every tensor has memory on the cluster\n"
            "  hint: leave the device out; creating layers is cheap, as it waits for nothing"
        )


def check_index(given: Any) -> None:
    """Warn, once, about the number of a GPU that is not a worker's: it has no effect.

    Args:
        given: a device, its name or its number.
    """
    of = device(given)
    if of.index and of.type != "cpu":
        _warn_of_index(of.type, of.index)


@functools.cache
def _warn_of_index(kind: str, index: int) -> None:
    from gt.session.status import status  # it imports modules that import this one

    count = len(status().workers) or 1
    if index >= count:
        warn(
            f"device '{kind}:{index}': the session has {count} worker{'s'[: count != 1]}; the "
            "number has no effect, as the dispatcher decides which worker computes\n"
            "  hint: leave the number out"
        )


def is_torch_device(given: Any) -> bool:
    """Return whether a value is a device of PyTorch's, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, getattr(torch, "device", ()))


@functools.cache
def _warn_without_gpu(kind: str) -> None:
    from gt.engines import default, sees_gpu

    # The workers of a server may have any device.
    if not _gt.current_session().remote and (default() == "native" or not sees_gpu()):
        warn(
            f"device '{kind}': no worker of this process computes on a GPU, so the CPU computes\n"
            "  hint: gt.connect('HOST:PORT') to a server whose workers have GPUs"
        )


CLUSTER = device("cluster")


def is_device(given: Any) -> bool:
    """Return whether a value is a device or the name of one."""
    if isinstance(given, device) or is_torch_device(given):
        return True
    return isinstance(given, str) and given.partition(":")[0] in DEVICES
