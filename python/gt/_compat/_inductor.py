"""`torch._inductor` for PyTorch programs: settings of its compiler, which have no effect."""

import sys
from types import ModuleType, SimpleNamespace

__all__ = ["config"]

config = ModuleType(f"{__name__}.config", "Settings that have no effect.")
config.triton = SimpleNamespace(cudagraphs=False, unique_kernel_names=False)  # type: ignore[attr-defined]
sys.modules[config.__name__] = config
