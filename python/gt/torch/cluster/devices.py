"""The device that functions of `torch.cluster` take: cluster:0, the only one."""

from __future__ import annotations

from typing import Any

import torch

from gt.torch.kernels.creation import check_device as check_index


def check_device(device: Any) -> None:
    """Check a device, passed as PyTorch's, its name, its number, or None for the current one.

    Raises:
        RuntimeError: The number is that of no device.
        ValueError: It is not of the kind `cluster`.
    """
    if device is None or (isinstance(device, int) and device in (0, -1)):
        return
    of = torch.device("cluster", device) if isinstance(device, int) else torch.device(device)
    if of.type != "cluster":
        raise ValueError(f"Expected a cluster device, but got: {of}")
    check_index(of)
