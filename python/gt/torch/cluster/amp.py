"""`torch.cluster.amp`: the deprecated names of `torch.amp` for one device, which warn."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(torch.amp.autocast):
    """`torch.amp.autocast("cluster", ...)`.

    Args:
        enabled: Whether autocast is on in the block.
        dtype: The dtype of matrix products.
        cache_enabled: Whether casts of parameters are cached.
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype = torch.float16,
        cache_enabled: bool = True,
    ) -> None:
        _warn("autocast")
        super().__init__("cluster", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler("cluster", ...)`, with the same arguments except the device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _warn("GradScaler")
        super().__init__("cluster", *args, **kwargs)


@functools.wraps(torch.amp.custom_fwd)
def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
    """Call `torch.amp.custom_fwd` with `device_type="cluster"`."""
    _warn("custom_fwd")
    return torch.amp.custom_fwd(fwd, device_type="cluster", cast_inputs=cast_inputs)


@functools.wraps(torch.amp.custom_bwd)
def custom_bwd(bwd: Any) -> Any:
    """Call `torch.amp.custom_bwd` with `device_type="cluster"`."""
    _warn("custom_bwd")
    return torch.amp.custom_bwd(bwd, device_type="cluster")


def _warn(name: str) -> None:
    warnings.warn(
        f"`torch.cluster.amp.{name}(args...)` is deprecated. "
        f"Please use `torch.amp.{name}` with the device 'cluster' instead.",
        FutureWarning,
        stacklevel=3,
    )
