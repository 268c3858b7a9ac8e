"""`torch.nn.DataParallel` beside the device: its modules are called where they are.

The device is one, whatever the number of workers. PyTorch would move a module on the CPU to it, and
scatter inputs by CUDA's streams.
"""

from __future__ import annotations

import importlib


def register() -> None:
    """Let `DataParallel` see no devices to scatter to, as on a machine without GPUs."""
    module = importlib.import_module("torch.nn.parallel.data_parallel")
    available = module._get_available_device_type

    def device_type() -> str | None:
        kind: str | None = available()
        return None if kind == "cluster" else kind

    module._get_available_device_type = device_type  # type: ignore[attr-defined]
