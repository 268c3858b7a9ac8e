"""PyTorch's global settings: print options, and settings that do not affect results in GT."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

from gt import _gt, _legacy, _text
from gt._arguments import brief
from gt._device import CLUSTER, check_target, device

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_default_device",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "set_default_device",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "use_deterministic_algorithms",
]

_chosen = {"precision": "highest"}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print.

    Args:
        precision: the number of digits after the point; by default as many as a number needs.
        threshold: the number of elements above which a tensor is summarised, 1000 by default.
        edgeitems: the elements shown at each end of an axis of a summary, 3 by default.
        linewidth: the length of a line in characters, 75 by default.
        profile: "default", "short" (2 digits, threshold 1000, 2 at each end) or "full" (all).
        sci_mode: whether to use scientific notation; by default where numbers need it.
    """
    profiles: dict[str | None, dict[str, Any]] = {
        None: {},
        "default": dict(precision=None, threshold=1000, edgeitems=3, linewidth=75, sci_mode=None),
        "short": dict(precision=2, threshold=1000, edgeitems=2, linewidth=75),
        "full": dict(threshold=float("inf"), edgeitems=3, linewidth=75),
    }
    if profile not in profiles:
        raise ValueError(
            f"set_printoptions: profile is {profile!r}, expected 'default', 'short' or 'full'"
        )
    if precision is not None and not isinstance(precision, Integral):
        raise TypeError(
            f"set_printoptions: precision is {brief(precision)}, expected a number of digits"
        )
    given = dict(
        precision=precision,
        threshold=threshold,
        edgeitems=edgeitems,
        linewidth=linewidth,
        sci_mode=sci_mode,
    )
    given = {name: value for name, value in given.items() if value is not None}
    _text.options.update(profiles[profile] | given)


def get_num_threads() -> int:
    """Return the number of threads that a worker on this machine computes with."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_num_threads(number: int) -> None:
    """Check the number and otherwise do nothing: workers use all cores of their processes.

    Results never depend on it. `taskset` restricts a process to fewer cores.
    """
    if not isinstance(number, int) or number < 1:
        raise RuntimeError(f"set_num_threads: expected a positive number, not {number!r}")


def get_num_interop_threads() -> int:
    """Return the number of operations that a worker computes at the same time: 1."""
    return 1


def set_num_interop_threads(number: int) -> None:
    """Check the number and otherwise do nothing, as `set_num_threads`."""
    if not isinstance(number, int) or number < 1:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number, not {number!r}")


def set_flush_denormal(mode: bool) -> bool:
    """Return False: denormal numbers are never flushed to zero."""
    return False


def set_default_tensor_type(t: Any) -> None:
    """Set the default float dtype by a legacy tensor type: see `set_default_dtype`.

    Args:
        t: a type such as `gt.DoubleTensor`, or a name such as "torch.cuda.HalfTensor".

    >>> gt.set_default_tensor_type("torch.FloatTensor")
    """
    kind = t if not isinstance(t, str) else getattr(_legacy, t.rpartition(".")[2], None)
    dtype = getattr(kind, "dtype", None)
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type: got {t!r}, expected a float tensor type such as "
            "gt.FloatTensor"
        )
    _gt.set_default_dtype(dtype)


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matrix products, without effect: it is always "highest".

    Args:
        precision: "highest", "high" or "medium".
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: got {precision!r}, expected 'highest', 'high' or "
            "'medium'"
        )
    _chosen["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was called with; "highest" by default."""
    return _chosen["precision"]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Check the mode and otherwise do nothing: GT is always deterministic."""
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms: mode is {mode!r}, expected True or False")


def are_deterministic_algorithms_enabled() -> bool:
    """Return True: the same program always computes the same numbers."""
    return True


def set_default_device(device_: Any) -> None:
    """Check the device and otherwise do nothing: all tensors are on the cluster."""
    if device_ is not None:
        check_target(device_)


def get_default_device() -> device:
    """Return the device of all tensors, `device("cluster")`."""
    return CLUSTER
