"""`flex_attention` on the device: PyTorch's list of its devices is extended by this one.

PyTorch computes it by ordinary operators, compiled or not, which the device has.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from gt import integrations


def register() -> None:
    """Extend the list now, or when PyTorch imports the module, which takes half a second."""
    integrations.add("torch.nn.attention.flex_attention", __name__)


def extend(module: ModuleType) -> None:
    """Wrap the check of devices; a release without it needs nothing."""
    otherwise = getattr(module, "_validate_device", None)
    if otherwise is None:
        return

    @functools.wraps(otherwise)
    def validate(query: Any, key: Any, value: Any) -> None:
        if query.device.type != "cluster":
            otherwise(query, key, value)

    module._validate_device = validate  # type: ignore[attr-defined]
