"""The deprecated names of `gt.amp` for GPUs, which warn."""

from __future__ import annotations

import functools
from typing import Any

from gt import _gt, amp
from gt._lines import warn
from gt._paths import add_modules
from gt._public import show_callers

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`gt.autocast("cuda", ...)`.

    Args:
        enabled: whether autocast is on in the block; False turns it off.
        dtype: the dtype of matrix products, `gt.float16` or `gt.bfloat16`.
        cache_enabled: accepted for compatibility with PyTorch; nothing is cached.
    """

    def __init__(self, enabled: bool = True, dtype: Any = _gt.float16, cache_enabled: bool = True):
        _warn("autocast(args...)", "gt.amp.autocast('cuda', args...)")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`gt.amp.GradScaler("cuda", ...)`, with the same arguments except the device."""

    def __init__(self, *args: Any, **kwargs: Any):
        _warn("GradScaler(args...)", "gt.amp.GradScaler('cuda', args...)")
        super().__init__("cuda", *args, **kwargs)


@functools.wraps(amp.custom_fwd)
def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """Call `gt.amp.custom_fwd` with `device_type="cuda"`."""
    _warn("custom_fwd(args...)", "gt.amp.custom_fwd(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


@functools.wraps(amp.custom_bwd)
def custom_bwd(bwd: Any) -> Any:
    """Call `gt.amp.custom_bwd` with `device_type="cuda"`."""
    _warn("custom_bwd(args...)", "gt.amp.custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")


def _warn(old: str, new: str) -> None:
    warn(
        f"`gt.cuda.amp.{old}` is deprecated. Please use `{new}` instead.",
        FutureWarning,
    )


add_modules(__name__, {"autocast_mode": __name__, "common": __name__, "grad_scaler": __name__})


show_callers(globals())
