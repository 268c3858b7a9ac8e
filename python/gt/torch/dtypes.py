"""Conversion between PyTorch's and GT's dtypes."""

from __future__ import annotations

import torch

import gt

#: The names of dtypes that both libraries have.
_NAMES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
BY_TORCH = {getattr(torch, name): getattr(gt, name) for name in _NAMES}
_BY_NAME = {name: getattr(torch, name) for name in _NAMES}


def to_gt(dtype: torch.dtype) -> gt.dtype:
    """Return the GT dtype for a PyTorch dtype.

    Raises:
        RuntimeError: GT has no such dtype.
    """
    found = BY_TORCH.get(dtype)
    if found is None:
        raise RuntimeError(
            f"the device cluster has no tensors of {dtype}\n"
            f"  hint: it has {', '.join(_NAMES)}; cast the tensor first"
        )
    return found


def to_torch(dtype: gt.dtype) -> torch.dtype:
    """Return the PyTorch dtype for a GT dtype."""
    return _BY_NAME[str(dtype).removeprefix("gt.")]
