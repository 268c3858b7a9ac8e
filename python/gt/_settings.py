"""Settings of PyTorch's programs: how tensors print, and what has no bearing on numbers here."""

from __future__ import annotations

import os
from typing import Any

from gt import _gt, _legacy, _text
from gt._device import CLUSTER, check_target, device

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
        precision: how many digits after the point; by default as many as a number needs.
        threshold: of tensors with more elements the middle is left out, 1000 by default.
        edgeitems: how many are shown at each end of an axis then, 3 by default.
        linewidth: how many characters a line has, 75 by default.
        profile: "default", "short" (2 digits, threshold 1000, 2 at each end) or "full" (all).
        sci_mode: whether numbers are written with exponents; by default where they need it.
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
    given = dict(
        precision=precision,
        threshold=threshold,
        edgeitems=edgeitems,
        linewidth=linewidth,
        sci_mode=sci_mode,
    )
    given = {name: value for name, value in given.items() if value is not None}
    _text.options.update(profiles[profile] | given)


def gpu_workers(count: int | None = None, *, n: int | None = None) -> None:
    """Set how many workers a program without a connection has in its own process.

    They start with the next tensor of a thread that has not connected. After `gt.disconnect()`
    this begins anew.

    Args:
        count: how many.
        n: another name for `count`, as early versions had it.

    Raises:
        RuntimeError: workers have started already.
    """
    if (count is None) == (n is None):
        raise TypeError("gpu_workers: give count or n, which are the same, and not both")
    _gt.gpu_workers(count if count is not None else n)  # type: ignore[arg-type]


def get_num_threads() -> int:
    """Count the threads that a worker on this machine computes with."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_num_threads(number: int) -> None:
    """Do nothing but check the number: workers share the cores that their processes are given.

    Numbers never depend on it. `taskset` gives a process fewer cores.
    """
    if not isinstance(number, int) or number < 1:
        raise RuntimeError(f"set_num_threads: expected a positive number, not {number!r}")


def get_num_interop_threads() -> int:
    """Count the operations that a worker computes at the same time: one."""
    return 1


def set_num_interop_threads(number: int) -> None:
    """Do nothing but check the number, as `set_num_threads`."""
    if not isinstance(number, int) or number < 1:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number, not {number!r}")


def set_flush_denormal(mode: bool) -> bool:
    """Give False: numbers close to zero are kept, whatever is asked for."""
    return False


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype of new floats by the name of a type of tensors, as `set_default_dtype`.

    Args:
        t: `gt.DoubleTensor`, or a name that ends alike, such as "torch.cuda.HalfTensor".

    >>> gt.set_default_tensor_type("torch.FloatTensor")
    """
    kind = t if not isinstance(t, str) else getattr(_legacy, t.rpartition(".")[2], None)
    dtype = getattr(kind, "dtype", None)
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type: {t!r} is given, expected a type of floats such as "
            "gt.FloatTensor"
        )
    _gt.set_default_dtype(dtype)


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be less precise; here they are always as "highest" says.

    Args:
        precision: "highest", "high" or "medium".
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: {precision!r} is given, expected 'highest', 'high' or "
            "'medium'"
        )
    _chosen["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Give what `set_float32_matmul_precision` was called with."""
    return _chosen["precision"]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for the same numbers each time: it has no effect, as GT always gives them."""
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms: mode is {mode!r}, expected True or False")


def are_deterministic_algorithms_enabled() -> bool:
    """Say that the same program gives the same numbers each time."""
    return True


def set_default_device(device_: Any) -> None:
    """Check a device and do nothing else: all tensors are on the cluster."""
    if device_ is not None:
        check_target(device_)


def get_default_device() -> device:
    """Give the device of all tensors."""
    return CLUSTER
