"""Types of arguments, for annotations."""

import os
from typing import IO, TypeAlias

from gt import Size, device, dtype, layout
from gt._gt import Tensor

__all__ = ["Device", "FileLike", "Number", "Tensor"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_Number = (int, float, bool)
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]
_TensorOrOptionalTensors: TypeAlias = Tensor | tuple[Tensor | None, ...]
_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str
_device, _dtype, _layout = device, dtype, layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]
