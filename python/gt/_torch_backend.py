"""The device "cluster" for programs that import PyTorch alone."""

from __future__ import annotations

import sys
import warnings


def load() -> None:
    """Register the device, as PyTorch asks for at the end of its own import.

    `TORCH_DEVICE_BACKEND_AUTOLOAD=0`, PyTorch's own switch for all devices, leaves that to
    `import gt.torch`. An engine of GT's that computes with PyTorch needs no device of GT's. A
    PyTorch that is too old goes without, and `import gt.torch` says why: programs that only happen
    to run where GT is installed must not fail for it.
    """
    if "gt.torch" in sys.modules or "gt.engines.pytorch" in sys.modules:
        return
    try:
        import gt.torch  # noqa: F401
    except ImportError:
        pass
    except Exception as error:
        warnings.warn(
            f"PyTorch goes without the device cluster, which cannot be registered: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
