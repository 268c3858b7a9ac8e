"""The parts of PyTorch's `torch.utils` that GT has."""

# Whole packages first: two threads that import a package's modules in another order would meet
# one that is half imported.
import gt.nn
import gt.optim  # noqa: F401

from . import checkpoint, data, dlpack

__all__ = [
    "benchmark",
    "checkpoint",
    "cpp_extension",
    "data",
    "dlpack",
    "hooks",
    "model_zoo",
    "tensorboard",
]


def __getattr__(name: str) -> object:
    """Import one of the modules that few programs use."""
    if name in __all__ or name == "_pytree":
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"gt.utils has no '{name}', expected one of {', '.join(__all__)}")
