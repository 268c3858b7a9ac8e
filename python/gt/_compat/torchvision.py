"""Functions of torchvision that take and return tensors of GT, such as `save_image` and `nms`.

    from gt.torchvision.utils import make_grid, save_image

torchvision accepts tensors of PyTorch's only. These modules have its functions under the same
names; they convert the arguments, call torchvision, and convert the results, through which no
gradients flow. Its transforms of images need nothing: a `DataLoader` collates what they return.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import FunctionType, ModuleType
from typing import Any

from gt._gt import Tensor
from gt.func.tree import mapped
from gt.ops.foreign import to_tensor

__all__ = ["io", "ops", "transforms", "utils"]


class _Functions(ModuleType):
    """A module of torchvision whose functions take tensors of GT."""

    def __init__(self, name: str, original: str):
        super().__init__(name, f"The functions of {original}, for tensors of GT.")
        self._original = original
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        try:
            found = getattr(importlib.import_module(self._original), name)
        except ImportError as error:
            raise ImportError(
                f"{self.__name__}: torchvision is not installed: {error}\n"
                "  hint: pip install torchvision"
            ) from error
        made = _converting(found) if isinstance(found, FunctionType) else found
        setattr(self, name, made)
        return made


def _converting(function: Any) -> Any:
    """Return a function whose arguments and results are converted."""

    @functools.wraps(function)
    def converting(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = mapped(_to_torch, (args, kwargs))
        return mapped(_from_torch, function(*args, **kwargs))

    return converting


def _to_torch(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    import torch

    value = value.detach()
    if value.dtype.name == "bfloat16":
        return torch.as_tensor(value.float()).bfloat16()
    return torch.as_tensor(value)


def _from_torch(value: Any) -> Any:
    import torch

    return to_tensor(value) if isinstance(value, torch.Tensor) else value


io = _Functions(f"{__name__}.io", "torchvision.io")
ops = _Functions(f"{__name__}.ops", "torchvision.ops")
transforms = _Functions(f"{__name__}.transforms", "torchvision.transforms")
vars(transforms)["functional"] = _Functions(
    f"{__name__}.transforms.functional", "torchvision.transforms.functional"
)
utils = _Functions(f"{__name__}.utils", "torchvision.utils")
