"""`torch._dynamo` for PyTorch programs: settings of its compiler, which have no effect."""

from types import SimpleNamespace

from gt.compiler import disable, is_compiling, reset

__all__ = ["config", "disable", "is_compiling", "reset"]

config = SimpleNamespace(
    cache_size_limit=8, suppress_errors=False, verbose=False, capture_scalar_outputs=False
)
