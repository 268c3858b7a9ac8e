"""Which device these tests run on: a GPU where there is one, or else the stand-in."""

import importlib.util
import os
from pathlib import Path

#: `cpu` takes the stand-in even if there is a GPU.
STANDIN = os.environ.get("GT_GPU_STANDIN")
HAS_TORCH = importlib.util.find_spec("torch") is not None


def sees_gpu() -> bool:
    """Say whether the tests run on a GPU."""
    if STANDIN or not HAS_TORCH:
        return False
    import torch

    return torch.cuda.is_available()


ON_GPU = sees_gpu()
#: What workers in other processes compute with.
BACKEND = "pytorch" if ON_GPU else "standin:StandInEngine"
#: The environment of programs and workers whose engine this is.
ENVIRONMENT = {
    "GT_BACKEND": BACKEND,
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    ),
}
#: The whole environment of such a program, once these are added.
HERE_FIRST = {**os.environ, **ENVIRONMENT}


def make_engine(**options):
    """Make an engine on the device."""
    if ON_GPU:
        from gt.engines.pytorch import PyTorchEngine

        return PyTorchEngine(0, **options)
    from standin import StandInEngine

    return StandInEngine(**options)
