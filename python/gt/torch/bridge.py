"""From PyTorch's tensors to GT's and back."""

from __future__ import annotations

import torch

import gt
from gt._gt import torch_device
from gt.torch.kernels import memory


def from_torch(tensor: torch.Tensor) -> gt.Tensor:
    """Give a tensor of PyTorch's as one of GT's.

    One on the device "cluster" is taken as it is, without a copy. Later changes in place of either
    are not seen by the other.

    >>> gt.torch.from_torch(torch.ones(2, device="cluster")) + 1
    tensor([2., 2.], dtype=float32)
    """
    if tensor.device.type == "cluster":
        return torch_device.read(tensor)
    return memory.from_host(tensor)


def to_torch(tensor: gt.Tensor, device: str = "cluster") -> torch.Tensor:
    """Give a tensor of GT's as one of PyTorch's, on the device "cluster" without a copy.

    Args:
        tensor: the tensor.
        device: "cluster", or "cpu" for its values in this process.

    >>> gt.torch.to_torch(gt.ones(2)).device
    device(type='cluster', index=0)
    """
    if torch.device(device).type == "cluster":
        return torch_device.wrap(tensor)
    return memory.to_host(tensor)
