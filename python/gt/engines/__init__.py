"""Engines in Python: what computes on a worker, besides GT's own engine.

`load` makes one by its name. Nothing is imported before it is asked for: neither NumPy, nor JAX,
nor PyTorch.
"""

import importlib
import os
import warnings
from importlib.util import find_spec

from gt.engines import gpus
from gt.engines.engine import (
    Engine,
    Kind,
    Meta,
    OutOfMemory,
    Plan,
    Signature,
    Step,
    StepError,
)

__all__ = [
    "Engine",
    "Kind",
    "Meta",
    "OutOfMemory",
    "Plan",
    "Signature",
    "Step",
    "StepError",
    "default",
    "load",
    "sees_gpu",
]

#: By its name, where an engine is, and what has to be installed for it.
_ENGINES = {
    "numpy": ("gt.engines.numpy:NumPyEngine", "numpy"),
    "pytorch": ("gt.engines.pytorch:PyTorchEngine", "torch"),
    "jax": ("gt.engines.jax:JAXEngine", "jax"),
}


def load(name: str, index: int = 0) -> Engine:
    """Make an engine by its name, or one of your own by `module:Class`.

    `index` is the number of the GPU to compute on, where there are any. Modules named in
    GT_KERNELS, with commas between, register their custom operations: `register(engine)` of each.
    Raises `ValueError` if there is no such engine, `ImportError` if a package is missing or too
    old, and `gt.engines.gpus.DeviceError` if a GPU is there but cannot be used.
    """
    if ":" in name:
        return _made(name, index)
    if name == "native":
        raise ValueError("the engine 'native' is a part of workers, not one in Python")
    if name not in _ENGINES:
        names = ("native", *_ENGINES)
        import difflib  # slow to import

        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise ValueError(
            f"there is no engine '{name}', expected one of {', '.join(names)}, "
            f"or module:Class{hint}"
        )
    place, package = _ENGINES[name]
    if find_spec(package) is None:
        raise ImportError(f"the engine '{name}' needs the package {package}: pip install {package}")
    if name == "pytorch":
        if old := gpus.too_old():
            raise ImportError(f"the engine 'pytorch': {old}")
        sees_gpu()  # or else says why not
    return _made(place, index)


def _made(place: str, index: int) -> Engine:
    module, _, name = place.partition(":")
    made = getattr(importlib.import_module(module), name, None)
    if not isinstance(made, type) or not issubclass(made, Engine):
        raise ValueError(f"'{place}' is not an engine: expected a subclass of gt.engines.Engine")
    engine = made(index)
    for kernels in filter(None, os.environ.get("GT_KERNELS", "").split(",")):
        register = getattr(importlib.import_module(kernels.strip()), "register", None)
        if not callable(register):
            raise ValueError(f"GT_KERNELS: the module '{kernels}' has no function register(engine)")
        register(engine)
    return engine


def default() -> str:
    """Name the engine of workers: what GT_BACKEND says, or PyTorch's where it sees a GPU."""
    name = os.environ.get("GT_BACKEND") or ("pytorch" if sees_gpu() else "native")
    if name != "pytorch" and os.environ.get("GT_AUTOCAST"):
        warnings.warn(
            f"GT_AUTOCAST is for the PyTorch engine: '{name}' multiplies float32 as float32",
            stacklevel=2,
        )
    return name


def sees_gpu() -> int:
    """Count the GPUs that PyTorch sees; 0 where it is not installed.

    Where there plainly is no GPU, PyTorch is not imported to find out. If there is one that PyTorch
    does not see, a line on stderr says why, once.
    """
    count, why = gpus.look()
    gpus.tell(why)
    return count
