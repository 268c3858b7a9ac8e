"""Questions that PyTorch programs ask about modes and types."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt._settings import use_deterministic_algorithms

__all__ = [
    "get_deterministic_debug_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_inference_mode_enabled",
    "is_storage",
    "set_deterministic_debug_mode",
    "typename",
]


def typename(obj: Any) -> str:
    """Return the name of an object's type, with its module; of a tensor the legacy type's name.

    >>> gt.typename(gt.ones(1)), gt.typename(gt.nn.Linear)
    ('gt.FloatTensor', 'gt.nn.linear.Linear')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None)
    return kind.__qualname__ if module in (None, "builtins") else f"{module}.{kind.__qualname__}"


def is_storage(obj: object) -> bool:
    """Return False: the memory of a tensor is its worker's, so programs have no storages."""
    return False


def is_inference_mode_enabled() -> bool:
    """Return False: `gt.inference_mode` is `gt.no_grad`, whose results are ordinary tensors."""
    return False


def is_anomaly_enabled() -> bool:
    """Return False: each error names the line of the operation that failed, also of backward."""
    return False


def is_anomaly_check_nan_enabled() -> bool:
    """Return False: GT_CHECK_NAN=1 lets workers check the results of operations."""
    return False


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return False: all algorithms of GT are deterministic."""
    return False


def get_deterministic_debug_mode() -> int:
    """Return 2, PyTorch's number for "error": all algorithms of GT are deterministic."""
    return 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Check the mode and otherwise do nothing: GT is always deterministic.

    Args:
        debug_mode: 0 or "default", 1 or "warn", 2 or "error".
    """
    if debug_mode not in (0, 1, 2, "default", "warn", "error"):
        raise ValueError(
            f"set_deterministic_debug_mode: debug_mode is {debug_mode!r}, expected 0, 1, 2, "
            "'default', 'warn' or 'error'"
        )
    use_deterministic_algorithms(debug_mode in (1, 2, "warn", "error"))
