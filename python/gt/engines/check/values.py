"""Values on their way into and out of engines, and how far they may be apart."""

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

#: How far the values of an elementwise operation may be apart, relatively and absolutely.
TOLERANCES = {
    "float16": 1.2e-2,
    "bfloat16": 9e-2,
    "float32": 9e-6,
    "float64": 3e-12,
    "complex64": 9e-6,
    "complex128": 3e-12,
}
#: Sums of many are allowed seven times as much.
_SUMS = frozenset("matmul prod sum mean cumsum var std".split())
#: PyTorch's own, in float64, are right to eight or nine digits.
_APPROXIMATE = frozenset(
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 polygamma digamma zeta igamma igammac".split()
)


def to_bytes(values: Any, dtype: str) -> bytes:
    """Give values as `create` takes them; bfloat16 ones come as float32."""
    if dtype == "bfloat16":
        return (np.asarray(values, "float32").view("uint32") >> 16).astype("uint16").tobytes()
    return np.asarray(values, dtype).tobytes()


def to_array(data: Any, meta: Meta) -> np.ndarray:
    """Give values as `read` gives them; bfloat16 as float32.

    Raises `ValueError` if there are more or fewer bytes than such a tensor has.
    """
    flat = np.frombuffer(memoryview(data), "uint8") if meta.bytes else np.empty(0, "uint8")
    if flat.nbytes != meta.bytes:
        raise ValueError(f"read gave {flat.nbytes} bytes, expected {meta.bytes}")
    if meta.dtype == "bfloat16":
        values = (flat.view("uint16").astype("uint32") << 16).view("float32")
    else:
        values = flat.view(meta.dtype)
    return values.reshape(meta.shape)


def put(engine: Engine, values: Any, dtype: str | None = None) -> Any:
    """Give an array to an engine; numbers stay as they are."""
    if dtype is None and not isinstance(values, np.ndarray):
        return values
    dtype = dtype or values.dtype.name
    data = memoryview(bytearray(to_bytes(values, dtype)))
    return engine.create(data, dtype, np.shape(values))


def get(engine: Engine, tensor: Any) -> np.ndarray:
    """Read a tensor."""
    return to_array(engine.read(tensor), engine.describe(tensor))


def meta_of(values: Any, dtype: str | None = None) -> Meta | type:
    """Describe an array, or give a number's type."""
    if dtype is None and not isinstance(values, np.ndarray):
        return type(values)
    return Meta(dtype or values.dtype.name, tuple(np.shape(values)))


def kind_of(values: Any, dtype: str | None = None) -> Kind | type:
    """Give the kind of an array, or a number's type."""
    meta = meta_of(values, dtype)
    return Kind(meta.dtype, bool(meta.shape)) if isinstance(meta, Meta) else meta


def difference(got: np.ndarray, want: np.ndarray, operation: str, dtype: str) -> str | None:
    """Say where values differ: floats by more than the dtype's tolerance, others at all."""
    tolerance = TOLERANCES.get(dtype, 0) * (7 if operation in _SUMS else 1)
    if operation in _APPROXIMATE:
        tolerance = max(tolerance, 1e-7)
    if operation.startswith("_linalg"):
        tolerance *= 10
    if operation == "_linalg_svd":  # the signs of vectors are anybody's choice
        got, want = np.abs(got), np.abs(want)
    if operation == "_linalg_eig":  # and so is the order
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
    return f"gives {got[place]}, expected {want[place]} (at {list(place)}{many})"
