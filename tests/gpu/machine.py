"""The choice of the device for these tests: a GPU if there is one, or else the stand-in."""

import importlib.util
import os
from pathlib import Path

#: If set to `cpu`, the stand-in is used even if there is a GPU.
STANDIN = os.environ.get("GT_GPU_STANDIN")
HAS_TORCH = importlib.util.find_spec("torch") is not None


def sees_gpu() -> bool:
    """Return whether the tests run on a GPU."""
    if STANDIN or not HAS_TORCH:
        return False
    import torch

    return torch.cuda.is_available()


ON_GPU = sees_gpu()
#: The backend of workers in other processes.
BACKEND = "pytorch" if ON_GPU else "standin:StandInEngine"
#: Environment variables that select this engine for programs and workers.
ENVIRONMENT = {
    "GT_BACKEND": BACKEND,
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    ),
}
#: The complete environment of such a program.
HERE_FIRST = {**os.environ, **ENVIRONMENT}


def make_engine(**options):
    """Create an engine on the device."""
    if ON_GPU:
        from gt.engines.pytorch import PyTorchEngine

        return PyTorchEngine(0, **options)
    from standin import StandInEngine

    return StandInEngine(**options)
