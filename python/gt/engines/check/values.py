"""Conversion of values to and from engines, and comparison within tolerances."""

from typing import Any

import numpy as np

from gt.engines.engine import Engine, Kind, Meta

DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)

#: The relative and absolute tolerance for elementwise operations.
TOLERANCES = {
    "float16": 1.2e-2,
    "bfloat16": 9e-2,
    "float32": 9e-6,
    "float64": 3e-12,
    "complex64": 9e-6,
    "complex128": 3e-12,
}
#: Operations that add up many elements, with seven times the tolerance.
_SUMS = frozenset("matmul prod sum mean cumsum var std".split())
#: PyTorch's own implementations are accurate to eight or nine digits in float64.
_APPROXIMATE = frozenset(
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 polygamma digamma zeta igamma igammac".split()
)


def to_bytes(values: Any, dtype: str) -> bytes:
    """Return values as bytes for `create`; bfloat16 values are passed as float32."""
    if dtype == "bfloat16":
        return (np.asarray(values, "float32").view("uint32") >> 16).astype("uint16").tobytes()
    return np.asarray(values, dtype).tobytes()


def to_array(data: Any, meta: Meta) -> np.ndarray:
    """Return bytes from `read` as an array; bfloat16 becomes float32.

    Raises `ValueError` if the number of bytes does not match the meta.
    """
    flat = np.frombuffer(memoryview(data), "uint8") if meta.bytes else np.empty(0, "uint8")
    if flat.nbytes != meta.bytes:
        raise ValueError(f"read returned {flat.nbytes} bytes, expected {meta.bytes}")
    if meta.dtype == "bfloat16":
        values = (flat.view("uint16").astype("uint32") << 16).view("float32")
    else:
        values = flat.view(meta.dtype)
    return values.reshape(meta.shape)


def put(engine: Engine, values: Any, dtype: str | None = None) -> Any:
    """Create a tensor from an array; numbers are returned unchanged."""
    if dtype is None and not isinstance(values, np.ndarray):
        return values
    dtype = dtype or values.dtype.name
    data = memoryview(bytearray(to_bytes(values, dtype)))
    return engine.create(data, dtype, np.shape(values))


def get(engine: Engine, tensor: Any) -> np.ndarray:
    """Return a tensor's values as an array."""
    return to_array(engine.read(tensor), engine.describe(tensor))


def meta_of(values: Any, dtype: str | None = None) -> Meta | type:
    """Return the meta of an array, or the type of a number."""
    if dtype is None and not isinstance(values, np.ndarray):
        return type(values)
    return Meta(dtype or values.dtype.name, tuple(np.shape(values)))


def kind_of(values: Any, dtype: str | None = None) -> Kind | type:
    """Return the kind of an array, or the type of a number."""
    meta = meta_of(values, dtype)
    return Kind(meta.dtype, bool(meta.shape)) if isinstance(meta, Meta) else meta


def difference(got: np.ndarray, want: np.ndarray, operation: str, dtype: str) -> str | None:
    """Return a description of where values differ (floats by more than the tolerance), or None."""
    tolerance = TOLERANCES.get(dtype, 0) * (7 if operation in _SUMS else 1)
    if operation in _APPROXIMATE:
        tolerance = max(tolerance, 1e-7)
    if operation.startswith("_linalg"):
        tolerance *= 10
    if operation == "_linalg_svd":  # the signs of singular vectors are not unique
        got, want = np.abs(got), np.abs(want)
    if operation == "_linalg_eig":  # the order of eigenvalues is not unique
        got, want = np.sort_complex(got), np.sort_complex(want)
    if tolerance == 0:
        fine = np.asarray(got == want)
    else:
        wide = "complex128" if dtype.startswith("complex") else "float64"
        with np.errstate(all="ignore"):
            wide_got, wide_want = np.asarray(got, wide), np.asarray(want, wide)
            fine = np.isclose(wide_got, wide_want, tolerance, tolerance, equal_nan=True)
    if fine.all():
        return None
    place = tuple(int(at) for at in np.argwhere(~fine)[0])
    many = f", and {np.sum(~fine) - 1} more" if np.sum(~fine) > 1 else ""
    return f"is {got[place]}, expected {want[place]} (at {list(place)}{many})"
