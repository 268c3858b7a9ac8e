"""The device "cluster" for programs that import PyTorch alone."""

from __future__ import annotations

import sys


def load() -> None:
    """Register the device, as PyTorch asks for at the end of its own import.

    `TORCH_DEVICE_BACKEND_AUTOLOAD=0`, PyTorch's own switch for all devices, leaves that to
    `import gt.torch`. An engine of GT's that computes with PyTorch needs no device of GT's.
    """
    if "gt.torch" not in sys.modules and "gt.engines.pytorch" not in sys.modules:
        import gt.torch  # noqa: F401
