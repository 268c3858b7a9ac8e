"""Values on their way into an operation: dtypes, numbers, and what is required of them."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gt.engines.engine import out_of_range
from gt.engines.promotion import is_complex, is_float

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in """bool uint8 int8 int16 int32 int64
    float16 bfloat16 float32 float64 complex64 complex128""".split()
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def converted(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Give a tensor in a dtype, by the rules of the cast operation."""
    if isinstance(x, tuple):
        return x  # its results are taken out of it, and converted, one by one
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
    """Cut floats towards zero to int64; what is beyond its range becomes its end, NaN 0."""
    below, above = x < -(2.0**63), x >= 2.0**63
    inside = torch.where(below | above | x.isnan(), 0.0, x).to(torch.int64)
    return torch.where(above, _HIGHEST, torch.where(below, _LOWEST, inside))


def fitting(dtype: str) -> Callable[[Any], Any]:
    """Give what brings a Python number into a dtype; integers keep their low bits."""
    if dtype == "bool":
        return bool
    if is_float(dtype) or is_complex(dtype):
        largest = torch.finfo(DTYPES[dtype]).max

        def rounded(value: Any) -> float:
            value = float(value)
            # A number beyond the dtype's largest, which PyTorch refuses, is infinite.
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
    """Cut towards zero, to the range of int64; NaN gives 0."""
    if value != value:
        return 0
    return min(int(min(max(value, -(2.0**63)), 2.0**63)), _HIGHEST)


@dataclass
class Requirement:
    """What fails with `error()` unless `fine` holds, a tensor that is perhaps not there yet."""

    fine: torch.Tensor
    error: Callable[[], Exception]


class _Requirements(threading.local):
    def __init__(self) -> None:
        self.open: list[Requirement] = []


_requirements = _Requirements()


def require(fine: torch.Tensor, error: Callable[[], Exception]) -> None:
    """Note that all of `fine` must hold, else what is being computed fails.

    Nothing waits for a GPU here: who has called looks at what was required, or compiles it.
    """
    _requirements.open.append(Requirement(fine.all(), error))


def take_required() -> list[Requirement]:
    """Give what was required since the last time, in order."""
    required, _requirements.open = _requirements.open, []
    return required


def below(index: torch.Tensor, length: int) -> torch.Tensor:
    """Require an index to be on an axis, and give one that is."""
    if length == 0 and index.numel() > 0:
        # No other index would do instead.
        raise out_of_range(int(index.reshape(-1)[0]), length)
    fine = (index >= 0) & (index < length)
    require(fine, lambda: culprit(index, fine, length))
    return torch.where(fine, index, 0)


def culprit(index: torch.Tensor, fine: torch.Tensor, length: int) -> Exception:
    """Name the first entry that is not fine."""
    first = int(fine.reshape(-1).to(torch.uint8).argmin())
    return out_of_range(int(index.reshape(-1)[first]), length)
