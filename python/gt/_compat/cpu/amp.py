"""The deprecated names of `gt.amp` for CPUs, which warn."""

from __future__ import annotations

from typing import Any

from gt import _gt, amp
from gt._lines import warn
from gt._public import show_callers

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`gt.autocast("cpu", ...)`.

    Args:
        enabled: whether autocast is on in the block; False turns it off.
        dtype: the dtype of matrix products, `gt.bfloat16` or `gt.float16`.
        cache_enabled: accepted for compatibility with PyTorch; nothing is cached.
    """

    def __init__(self, enabled: bool = True, dtype: Any = _gt.bfloat16, cache_enabled: bool = True):
        warn(
            "`gt.cpu.amp.autocast(args...)` is deprecated. Please use "
            "`gt.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
        )
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`gt.amp.GradScaler("cpu", ...)`, with the same arguments except the device."""

    def __init__(self, *args: Any, **kwargs: Any):
        warn(
            "`gt.cpu.amp.GradScaler(args...)` is deprecated. Please use "
            "`gt.amp.GradScaler('cpu', args...)` instead.",
            FutureWarning,
        )
        super().__init__("cpu", *args, **kwargs)


show_callers(globals())
