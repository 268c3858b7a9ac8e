"""Conversion of operands to dtypes, and requirements on their values."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gt.engines.errors import out_of_range
from gt.engines.promotion import is_complex, is_float

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in """bool uint8 int8 int16 int32 int64
    float16 bfloat16 float32 float64 complex64 complex128""".split()
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def converted(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert a tensor to a dtype by the rules of the cast operation."""
    if isinstance(x, tuple):
        return x  # several results: `further` selects and converts each
    if x.dtype is dtype:
        return x
    if x.dtype.is_complex and not (dtype.is_complex or dtype is torch.bool):
        x = torch.real(x)
    if x.dtype.is_floating_point and not (
        dtype.is_complex or dtype.is_floating_point or dtype is torch.bool
    ):
        x = _whole(x if x.dtype is torch.float64 else x.to(torch.float32))
    return x.to(dtype)


def _whole(x: torch.Tensor) -> torch.Tensor:
    """Truncate floats towards zero to int64, saturating at its limits; NaN becomes 0."""
    below, above = x < -(2.0**63), x >= 2.0**63
    inside = torch.where(below | above | x.isnan(), 0.0, x).to(torch.int64)
    return torch.where(above, _HIGHEST, torch.where(below, _LOWEST, inside))


def fitting(dtype: str) -> Callable[[Any], Any]:
    """Return a function that converts a Python number to a dtype; integers wrap around."""
    if dtype == "bool":
        return bool
    if is_float(dtype) or is_complex(dtype):
        largest = torch.finfo(DTYPES[dtype]).max

        def rounded(value: Any) -> float:
            value = float(value)
            # PyTorch rejects numbers beyond the dtype's maximum, which become infinite in GT.
            return value if -largest <= value <= largest else value * math.inf

        return rounded
    bits = DTYPES[dtype].itemsize * 8
    lowest = 0 if dtype == "uint8" else -(1 << bits - 1)

    def fit(value: Any) -> int:
        if isinstance(value, float):
            value = _cut(value)
        return (int(value) - lowest) % (1 << bits) + lowest

    return fit


def _cut(value: float) -> int:
    """Truncate towards zero, saturating at the limits of int64; NaN becomes 0."""
    if value != value:
        return 0
    return min(int(min(max(value, -(2.0**63)), 2.0**63)), _HIGHEST)


@dataclass
class Requirement:
    """A condition on values: the step fails with `error()` unless the 0-d tensor `fine` is true."""

    fine: torch.Tensor
    error: Callable[[], Exception]


class _Requirements(threading.local):
    def __init__(self) -> None:
        self.open: list[Requirement] = []


_requirements = _Requirements()


def require(fine: torch.Tensor, error: Callable[[], Exception]) -> None:
    """Record that the current step fails unless all of `fine` is true.

    This does not wait for a GPU: the caller of the lowering checks the requirement, or compiles it
    into an output.
    """
    _requirements.open.append(Requirement(fine.all(), error))


def take_required() -> list[Requirement]:
    """Return the requirements recorded since the last call, in order, and clear them."""
    required, _requirements.open = _requirements.open, []
    return required


def below(index: torch.Tensor, length: int) -> torch.Tensor:
    """Require an index to be in range, and return it with entries out of range replaced by 0."""
    if length == 0 and index.numel() > 0:
        # No index is valid, so there is no replacement.
        raise out_of_range(int(index.reshape(-1)[0]), length)
    fine = (index >= 0) & (index < length)
    require(fine, lambda: culprit(index, fine, length))
    return torch.where(fine, index, 0)


def culprit(index: torch.Tensor, fine: torch.Tensor, length: int) -> Exception:
    """Return the error that names the first entry that is out of range."""
    first = int(fine.reshape(-1).to(torch.uint8).argmin())
    return out_of_range(int(index.reshape(-1)[first]), length)
