"""PyTorch's dtypes and GT's."""

from __future__ import annotations

import torch

import gt

#: The dtypes that both have, by name.
_NAMES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
BY_TORCH = {getattr(torch, name): getattr(gt, name) for name in _NAMES}
_BY_NAME = {name: getattr(torch, name) for name in _NAMES}


def to_gt(dtype: torch.dtype) -> gt.dtype:
    """Give GT's dtype for one of PyTorch's.

    Raises:
        RuntimeError: the cluster has no such dtype.
    """
    found = BY_TORCH.get(dtype)
    if found is None:
        raise RuntimeError(
            f"the device cluster has no tensors of {dtype}\n"
            f"  hint: it has {', '.join(_NAMES)}; cast before the move"
        )
    return found


def to_torch(dtype: gt.dtype) -> torch.dtype:
    """Give PyTorch's dtype for one of GT's."""
    return _BY_NAME[str(dtype).removeprefix("gt.")]
