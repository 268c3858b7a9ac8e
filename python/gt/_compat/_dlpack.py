"""DLPack for bfloat16, which NumPy lacks: uint16 to NumPy, with another dtype code to others."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

#: The codes of unsigned integers and of bfloat16 (kDLUInt and kDLBfloat in dlpack.h).
_UINT, _BFLOAT = 1, 4
#: The offset of the dtype code in a capsule's struct, by the capsule's name: it follows the address
#: of the data (8 bytes), the device (8) and the number of axes (4). In a versioned capsule, the
#: version, the manager context, the deleter and the flags (8 bytes each) precede the tensor.
_PLACES = {b"dltensor": 20, b"dltensor_versioned": 52}


def export_bfloat16(bits: np.ndarray, options: dict[str, Any]) -> Any:
    """Return a DLPack capsule of bfloat16 numbers.

    Args:
        bits: the bits of the numbers, as uint16.
        options: the keyword arguments of `__dlpack__`.
    """
    capsule = bits.__dlpack__(**options)
    _code(capsule).value = _BFLOAT
    return capsule


def replace_bfloat16(capsule: Any) -> bool:
    """Replace the dtype of a capsule by uint16 if it is bfloat16; return whether it was.

    Args:
        capsule: a DLPack capsule that is not used yet.
    """
    code = _code(capsule)
    is_bfloat16 = code.value == _BFLOAT
    if is_bfloat16:
        code.value = _UINT
    return is_bfloat16


def _code(capsule: Any) -> ctypes.c_uint8:
    """Return the dtype code in the struct of a capsule."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    return ctypes.c_uint8.from_address(pointer_of(capsule, name) + _PLACES[name])
