"""How the weights of convolutions lie in memory, which here is nobody's concern."""

from __future__ import annotations

from typing import Any


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the module itself: tensors have one layout in memory, and numbers do not depend on it.

    Args:
        module: any module.
        memory_format: accepted for PyTorch's programs; it changes nothing.
    """
    return module


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the module itself, as `convert_conv2d_weight_memory_format`."""
    return module
