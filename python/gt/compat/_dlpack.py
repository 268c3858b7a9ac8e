"""DLPack for bfloat16, which NumPy lacks: export the bits as uint16, then patch the dtype code."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

#: The code of bfloat16 (kDLBfloat in dlpack.h).
_BFLOAT = 4
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
    name_of = ctypes.pythonapi.PyCapsule_GetName
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    ctypes.c_uint8.from_address(pointer_of(capsule, name) + _PLACES[name]).value = _BFLOAT
    return capsule
