"""The hooks by which PyTorch queries a device."""

from __future__ import annotations

from typing import Any

import torch


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    """The device is always available and initialized."""

    def is_available(self) -> bool:
        return True

    def is_built(self) -> bool:
        return True

    def has_primary_context(self, device_index: int) -> bool:
        return True


class _Guard(torch._C._acc.DeviceGuard):
    """There is one device, and it is always the current one."""

    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


_hooks, _guard = _Hooks(), _Guard()


def register() -> None:
    """Register both with PyTorch. The C++ extension has a faster guard."""
    torch._C._acc.register_python_privateuseone_hook(_hooks)
    torch._C._acc.register_python_privateuseone_device_guard(_guard)
