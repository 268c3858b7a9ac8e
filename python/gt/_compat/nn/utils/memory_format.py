"""PyTorch's functions for the memory layout of convolution weights, which have no effect in GT."""

from __future__ import annotations

from typing import Any


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Return the module itself: programs cannot choose the memory layout of tensors.

    Args:
        module: any module.
        memory_format: accepted as in PyTorch; it has no effect.
    """
    return module


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Return the module itself, as `convert_conv2d_weight_memory_format`."""
    return module
