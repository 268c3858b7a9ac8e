"""Parts of PyTorch that ask a device's C++ code: random generators, pinned memory, waiting."""

from __future__ import annotations

import functools
from typing import Any

import torch

import gt
from gt.torch import dtypes

_Host = torch.Generator


class _Known(type(_Host)):  # type: ignore[misc]
    """Every generator is one, also those that PyTorch itself has made."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Host)


class Generator(torch.Generator, metaclass=_Known):
    """A generator of random numbers, which may be one for the device "cluster".

    Args:
        device: what it draws for.
    """

    def __new__(cls, device: Any = "cpu") -> Any:
        """Make one of PyTorch's own, unless it is for the cluster."""
        if torch.device(device).type != "cluster":
            return _Host(device)
        return _Host.__new__(cls, "cpu")

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:
        """The device that it draws for."""
        return torch.device("cluster", 0)


def drawing_from(generator: torch.Generator | None) -> gt.Generator | None:
    """Give a source of GT's that goes on from one of PyTorch's; None for the session's own."""
    if generator is None:
        return None
    seed = torch.randint(2**62, (), generator=generator, device="cpu").item()
    return gt.Generator().manual_seed(seed)


def register() -> None:
    """Replace what would ask for C++ code of the device."""
    torch.Generator = Generator  # type: ignore[misc]
    if not torch.cuda.is_available():
        # A copy to the cluster reads the host's memory as it is: nothing has to be pinned.
        torch.Tensor.pin_memory = lambda self, device=None: self  # type: ignore[method-assign]
    torch.accelerator.synchronize = _synchronizing(torch.accelerator.synchronize)
    torch.set_default_dtype = _setting_dtype(torch.set_default_dtype)
    if torch.distributed.is_available():
        torch.distributed.init_process_group = _explaining(torch.distributed.init_process_group)


def _setting_dtype(otherwise: Any) -> Any:
    """Have GT's default dtype, which whole numbers become floats in, follow PyTorch's."""

    @functools.wraps(otherwise)
    def set_default_dtype(d: torch.dtype, /) -> None:
        otherwise(d)
        if d in dtypes.BY_TORCH:
            gt.set_default_dtype(dtypes.to_gt(d))

    return set_default_dtype


def _explaining(otherwise: Any) -> Any:
    """Say how a program runs on many workers where no process group can be made."""

    @functools.wraps(otherwise)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        try:
            otherwise(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            raise type(error)(
                f"{error}\n  hint: on the device cluster one process uses all workers: leave "
                "init_process_group out, and let gt.signal.context or "
                "gt.torch.parallelize_module say how tensors are cut"
            ) from error

    return init_process_group


def _synchronizing(otherwise: Any) -> Any:
    @functools.wraps(otherwise)
    def synchronize(device: Any = None, /) -> None:
        current = torch.accelerator.current_accelerator()
        if current is not None and current.type == "cluster":
            gt.synchronize()
        else:
            otherwise(device)

    return synchronize
