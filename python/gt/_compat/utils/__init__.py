"""The parts of PyTorch's `torch.utils` that GT has."""

# Whole packages first: two threads that import a package's modules in another order would meet
# one that is half imported.
import gt.nn
import gt.optim  # noqa: F401
from gt._absent import add_absent_modules

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


add_absent_modules(
    __name__,
    {"flop_counter": "FlopCounterMode"},
    "gt.debug.get_worker_stats() counts what the workers have computed",
)
add_absent_modules(
    __name__,
    {"mobile_optimizer": "optimize_for_mobile"},
    "gt.save(model.state_dict(), path), load it in PyTorch and export the model there",
)
