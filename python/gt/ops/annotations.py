"""The types of the parameters of operations, under the names that signatures use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

from gt._device import device
from gt._gt import dtype

#: A function that a decorator returns or one like it, its parameters, and its result.
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")

#: A Python number.
Number: TypeAlias = bool | int | float | complex
#: The length of each axis.
Size: TypeAlias = int | tuple[int, ...] | list[int]
#: One axis or several; None for all.
Dims: TypeAlias = Size | None
#: A dtype, its name, or a type of NumPy, PyTorch or Python.
DType: TypeAlias = dtype | str | type[Any]
#: A device or its name; accepted and without effect.
Device: TypeAlias = device | str | int | None
