"""Replacements of PyTorch functions that need C++ code of the device, such as generators."""

from __future__ import annotations

import functools
from typing import Any

import torch

import gt
from gt.torch import dtypes

_Host = torch.Generator


class _Known(type(_Host)):  # type: ignore[misc]
    """Makes every PyTorch generator an instance of `Generator`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Host)


class Generator(torch.Generator, metaclass=_Known):
    """A random number generator, possibly for the device "cluster".

    Args:
        device: The device of the generator.
    """

    def __new__(cls, device: Any = "cpu") -> Any:
        """Create a PyTorch generator unless the device is the cluster."""
        if torch.device(device).type != "cluster":
            return _Host(device)
        return _Host.__new__(cls, "cpu")

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:
        """The device of the generator."""
        return torch.device("cluster", 0)

    def clone_state(self) -> Any:
        """Return a generator with the same state."""
        made = Generator("cluster")
        made.set_state(self.get_state())
        return made

    def __reduce__(self) -> Any:
        """Return how to copy or load it, on the device."""
        kind, _, state = super().__reduce__()
        return kind, ("cluster",), state


class DefaultGenerator(Generator):
    """The generator of the session's random numbers."""

    def __new__(cls) -> Any:
        """Create the generator."""
        return _Host.__new__(cls, "cpu")

    def __init__(self) -> None:
        pass

    def manual_seed(self, seed: int) -> Any:
        """Set the seed of the session's random numbers, and return the generator."""
        gt.manual_seed(int(seed) & (2**63 - 1))
        return self

    def seed(self) -> int:
        """Set the seed of the session's random numbers to a random number, and return it."""
        return gt.seed()

    def initial_seed(self) -> int:
        """Return the seed of the session's random numbers."""
        return gt.initial_seed()

    def get_state(self) -> torch.Tensor:
        """Return the state of the session's random numbers."""
        return torch.from_numpy(gt.get_rng_state().numpy().copy())

    def set_state(self, new_state: torch.Tensor) -> Any:
        """Set the state of the session's random numbers, and return the generator."""
        gt.set_rng_state(gt.from_numpy(new_state.cpu().numpy()))
        return self

    def __reduce__(self) -> str:
        """Return its name: there is one in each process."""
        return "DEFAULT"


#: The one such generator.
DEFAULT = DefaultGenerator()


def drawing_from(generator: torch.Generator | None) -> gt.Generator | None:
    """Return a GT generator seeded from a PyTorch generator; None means the session's."""
    # PyTorch passes a generator to kernels in a new Python object.
    if generator is None or generator._cdata == DEFAULT._cdata:
        return None
    seed = torch.randint(2**62, (), generator=generator, device="cpu").item()
    return gt.Generator().manual_seed(seed)


def register() -> None:
    """Replace the functions that would need C++ code of the device."""
    torch.Generator = Generator
    if not torch.cuda.is_available():
        # Copies to the cluster do not need pinned memory.
        torch.Tensor.pin_memory = lambda self, device=None: self
    torch.set_default_dtype = _setting_dtype(torch.set_default_dtype)
    if torch.distributed.is_available():
        torch.distributed.init_process_group = _explaining(torch.distributed.init_process_group)


def _setting_dtype(otherwise: Any) -> Any:
    """Wrap `set_default_dtype` so that GT's default dtype follows PyTorch's."""

    @functools.wraps(otherwise)
    def set_default_dtype(d: torch.dtype, /) -> None:
        otherwise(d)
        if d in dtypes.BY_TORCH:
            gt.set_default_dtype(dtypes.to_gt(d))

    return set_default_dtype


def _explaining(otherwise: Any) -> Any:
    """Wrap `init_process_group` so that its error explains how to use several workers."""

    @functools.wraps(otherwise)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        try:
            otherwise(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            raise type(error)(
                f"{error}\n  hint: on the device cluster one process uses all workers: omit "
                "init_process_group, and shard tensors by gt.signal.context or "
                "gt.torch.parallelize_module"
            ) from error

    return init_process_group
