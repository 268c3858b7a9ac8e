"""The device that functions of `torch.cluster` take: cluster:0, the only one."""

from __future__ import annotations

from typing import Any

import torch


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
    if of.index not in (None, 0):
        raise RuntimeError(
            f"{of}: invalid device ordinal, there is 1 device, cluster:0, for all workers\n"
            "  hint: leave the number out; gt.signal.context chooses the workers of a tensor"
        )
