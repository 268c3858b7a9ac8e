"""Storages on the device: copies, saving and loading.

PyTorch allocates and reads storages in memory. The memory of this device is not in this process, so
the methods of `torch.UntypedStorage` are patched to call GT for storages of the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from gt._gt import torch_device
from gt.torch.kernels import creation, memory


def register() -> None:
    """Patch `torch.UntypedStorage`."""
    storage = torch.UntypedStorage
    storage.__new__ = staticmethod(_new(storage.__new__))
    for name, function in (
        ("copy_", _copy_),
        ("clone", _clone),
        ("cpu", _cpu),
        ("tolist", _tolist),
        ("_write_file", _write_file),
        ("__getitem__", _refuse("s[i]")),
        ("__setitem__", _refuse("s[i] = x")),
        ("fill_", _refuse("fill_")),
        ("resize_", _refuse("resize_")),
        ("share_memory_", _refuse("share_memory_")),
    ):
        setattr(storage, name, _on_cluster(function, getattr(storage, name)))


def _is_here(storage: Any) -> bool:
    return storage.device.type == "cluster"


def _on_cluster(function: Callable[..., Any], otherwise: Callable[..., Any]) -> Any:
    """Return a method that calls `function` for storages of the device, else `otherwise`."""

    @functools.wraps(otherwise)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_one = _is_here(self) or (
            args and isinstance(args[0], torch.UntypedStorage) and _is_here(args[0])
        )
        return (function if is_one else otherwise)(self, *args, **kwargs)

    return method


def _new(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def new(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None or torch.device(device).type != "cluster":
            more = {} if device is None else {"device": device}
            return otherwise(cls, *args, **more, **kwargs)
        return _blank(int(args[0]) if args else 0)

    return new


def _blank(bytes: int) -> Any:
    return creation.empty([bytes], dtype=torch.uint8).untyped_storage()


def _cpu(self: Any) -> Any:
    """Copy a storage to the host."""
    held = torch_device.storage_content(self.data_ptr()) if self.nbytes() else None
    if held is None:
        return torch.UntypedStorage(self.nbytes())
    if isinstance(held, bytes):
        return torch.frombuffer(bytearray(held), dtype=torch.uint8).untyped_storage()
    return memory.to_host(held).untyped_storage()


def _copy_(self: Any, source: Any, non_blocking: bool = False) -> Any:
    """Copy the bytes of a storage of the same length."""
    if self.nbytes() != source.nbytes():
        raise RuntimeError(
            f"copy_: a storage of {source.nbytes()} bytes cannot be copied to one of "
            f"{self.nbytes()}"
        )
    if not self.nbytes():
        return self
    if not _is_here(self):
        return self.copy_(_cpu(source))
    if _is_here(source):
        torch_device.copy_storage(self.data_ptr(), source.data_ptr())
    else:
        row = torch.empty(0, dtype=torch.uint8, device="cpu").set_(source)
        torch_device.fill_storage(self.data_ptr(), row.numpy().tobytes())
    return self


def _clone(self: Any) -> Any:
    """Copy a storage."""
    return _copy_(_blank(self.nbytes()), self)


def _tolist(self: Any) -> list[int]:
    """Return the bytes as a list."""
    return _cpu(self).tolist()


def _write_file(self: Any, *how: Any) -> Any:
    """Write the bytes to a file, as pickling of a single storage does."""
    return _cpu(self)._write_file(*how)


def _refuse(call: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{call}: a storage on the device cluster has no memory in this process\n"
            "  hint: use tensors, or storage.cpu()"
        )

    return refuse
