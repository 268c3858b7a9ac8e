"""Types of arguments, for annotations."""

from __future__ import annotations

from gt import Size as _Size
from gt import device as _device
from gt import dtype as _dtype
from gt import layout as _layout
from gt._gt import Tensor

__all__ = ["Device", "FileLike", "Number", "Tensor"]

import os
from typing import IO, Any, TypeAlias

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_size: TypeAlias = _Size | list[int] | tuple[int, ...]
_int, _float, _bool, _complex = int, float, bool, complex
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]
_device_t: TypeAlias = Any
