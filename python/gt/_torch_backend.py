"""Registers the device "cluster" for programs that import only PyTorch."""

from __future__ import annotations

import sys
import warnings


def load() -> None:
    """Register the device. PyTorch calls this at the end of its own import.

    With `TORCH_DEVICE_BACKEND_AUTOLOAD=0`, PyTorch's switch for all devices, only
    `import gt.torch` registers it. Nothing is registered in a process in which GT's PyTorch engine
    imports PyTorch, nor for a PyTorch that is too old: `import gt.torch` raises the reason then,
    but a program that merely runs where GT is installed must not fail.
    """
    if "gt.torch" in sys.modules or "gt.engines.pytorch" in sys.modules:
        return
    try:
        import gt.torch  # noqa: F401
    except ImportError:
        pass
    except Exception as error:
        warnings.warn(
            f"the device 'cluster' cannot be registered with PyTorch: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
