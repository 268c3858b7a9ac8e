"""Pickling of the device's tensors for other processes: queues, pipes, pools, data loaders.

Each process has its own session, so tensors are sent by value. PyTorch has a single reducer for
tensors of all devices, which this module replaces.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions
from torch.nn import Parameter

#: The name of the device.
_DEVICE = "cluster"


def register() -> None:
    """Register the reducer with multiprocessing; tensors of other devices use PyTorch's."""
    for kind in (torch.Tensor, Parameter):
        ForkingPickler.register(kind, _reduce)


def _reduce(tensor: torch.Tensor) -> tuple[Any, ...]:
    if tensor.device.type != _DEVICE:
        return reductions.reduce_tensor(tensor)
    # An error here would be lost in the queue's feeder thread, and the reader would wait for ever.
    # It is sent to the reader instead.
    try:
        if tensor.requires_grad and not tensor.is_leaf:
            raise RuntimeError(
                "a tensor with history cannot be sent to another process\n  hint: send x.detach()"
            )
        values = tensor.detach().cpu().contiguous()
        data = values.reshape(-1).view(torch.uint8).numpy().tobytes()
    except Exception as error:
        return _raise, (f"{type(error).__name__}: {error}",)
    shape, kind = tuple(values.shape), type(tensor) is Parameter
    return _rebuild, (data, values.dtype, shape, tensor.requires_grad, kind)


def _rebuild(
    data: bytes, dtype: torch.dtype, shape: tuple[int, ...], requires_grad: bool, is_parameter: bool
) -> torch.Tensor:
    values = (
        torch.frombuffer(bytearray(data), dtype=dtype)
        if data
        else torch.empty(0, dtype=dtype, device="cpu")
    )
    tensor = values.reshape(shape).to(_DEVICE)
    if is_parameter:
        return Parameter(tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def _raise(text: str) -> None:
    raise RuntimeError(f"a tensor of the device could not be sent: {text}")
