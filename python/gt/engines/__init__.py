"""The Python engines: alternatives to the native engine for computing on a worker.

`load` creates an engine by its name. NumPy, JAX and PyTorch are only imported when the engine that
needs them is loaded.
"""

import importlib
import os
from importlib.util import find_spec

from gt._lines import warn
from gt.engines import gpus
from gt.engines.engine import (
    Engine,
    Kind,
    Meta,
    Plan,
    Signature,
    Step,
)
from gt.engines.errors import OutOfMemory
from gt.engines.step_error import StepError

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

#: Engine name -> (`module:Class`, required package).
_ENGINES = {
    "numpy": ("gt.engines.numpy:NumPyEngine", "numpy"),
    "pytorch": ("gt.engines.pytorch:PyTorchEngine", "torch"),
    "jax": ("gt.engines.jax:JAXEngine", "jax"),
}


def load(name: str, index: int = 0) -> Engine:
    """Create an engine by its name, or a custom one by `module:Class`.

    `index` is the number of the GPU to compute on, if there is one. Each module listed in
    GT_KERNELS (separated by commas) registers its custom operations in a function
    `register(engine)`.

    Raises:
        ValueError: There is no such engine.
        ImportError: A package is missing or too old.
        gt.engines.gpus.DeviceError: There is a GPU that cannot be used.
    """
    if ":" in name:
        return _made(name, index)
    if name == "native":
        raise ValueError("the engine 'native' is built into workers: it has no Python class")
    if name not in _ENGINES:
        raise ValueError(f"there is no engine '{name}', {_expected(name)}")
    place, package = _ENGINES[name]
    if find_spec(package) is None:
        raise ImportError(f"the engine '{name}' needs the package {package}: pip install {package}")
    if name == "pytorch":
        if old := gpus.too_old():
            raise ImportError(f"the engine 'pytorch': {old}")
        sees_gpu()  # reports a GPU that PyTorch cannot use
    return _made(place, index)


def _expected(name: str) -> str:
    """Return which names of engines there are, and the one that is closest to a wrong name."""
    names = ("native", *_ENGINES)
    import difflib  # slow to import

    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"expected one of {', '.join(names)}, or module:Class{hint}"


def _made(place: str, index: int) -> Engine:
    module, _, name = place.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise
        raise ModuleNotFoundError(
            f"{place}: the engine cannot be imported: {error}\n"
            "  hint: Python finds modules in the folders of PYTHONPATH"
        ) from None
    made = getattr(found, name, None)
    if not isinstance(made, type) or not issubclass(made, Engine):
        raise ValueError(f"{place}: not an engine, expected a subclass of gt.engines.Engine")
    engine = made(index)
    for kernels in filter(None, os.environ.get("GT_KERNELS", "").split(",")):
        try:
            extension = importlib.import_module(kernels.strip())
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"GT_KERNELS is {os.environ['GT_KERNELS']!r}: {error}\n"
                "  hint: it names modules that Python finds, such as those in PYTHONPATH"
            ) from None
        register = getattr(extension, "register", None)
        if not callable(register):
            raise ValueError(f"GT_KERNELS: the module '{kernels}' has no function register(engine)")
        register(engine)
    return engine


def default() -> str:
    """Return the default engine: GT_BACKEND, or else pytorch with a GPU and native without.

    Raises:
        ValueError: GT_BACKEND names no engine.
    """
    name = os.environ.get("GT_BACKEND") or ("pytorch" if sees_gpu() else "native")
    if ":" not in name and name != "native" and name not in _ENGINES:
        raise ValueError(f"GT_BACKEND: there is no engine '{name}', {_expected(name)}")
    if name != "pytorch" and os.environ.get("GT_AUTOCAST"):
        warn(
            f"GT_AUTOCAST is for the PyTorch engine: '{name}' multiplies float32 as float32",
        )
    return name


def sees_gpu() -> int:
    """Return the number of GPUs that PyTorch sees; 0 if it is not installed.

    PyTorch is not imported on machines that have no trace of a GPU. If there is a GPU that PyTorch
    does not see, the reason is printed to stderr once.
    """
    count, why = gpus.look()
    gpus.tell(why)
    return count
