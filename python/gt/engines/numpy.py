"""The NumPy engine, which computes operation by operation."""

import math
import platform
from collections.abc import Callable
from typing import Any

import numpy as np

from gt.engines import arrays
from gt.engines.engine import Engine, Function, Meta, Signature
from gt.engines.promotion import taken_as

#: NumPy has no bfloat16, so its bits are stored in a structured dtype. Operations that only move
#: values work on it directly; others convert to float32.
BFLOAT16 = np.dtype([("bfloat16", "u2")])


def widened(x: np.ndarray) -> np.ndarray:
    """Convert bfloat16 to float32, of which it is the upper 16 bits."""
    return np.asarray(x.view("u2").astype("u4") << 16).view("f4")


def narrowed(x: np.ndarray) -> np.ndarray:
    """Return the bits of the bfloat16 nearest to a float32, ties to even; NaN stays NaN."""
    bits = np.asarray(x, "f4").view("u4")
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), bits >> 16 | 0x40, nearest).astype("u2")


def whole(x: np.ndarray) -> np.ndarray:
    """Truncate floats towards zero to int64, saturating at its limits; NaN becomes 0."""
    low, high = -(2.0**63), 2.0**63
    inside = np.where((x >= low) & (x < high), x, 0).astype("i8")
    return np.where(x >= high, np.iinfo("i8").max, np.where(x < low, np.iinfo("i8").min, inside))


def converted(value: Any, dtype: str | None, bfloat16: np.dtype = BFLOAT16) -> Any:
    """Convert an array or a number to a dtype (or its own) by the rules of the cast operation."""
    if isinstance(value, tuple):
        return value  # several results: `further` selects and converts each
    x = np.asarray(value)
    if dtype is None or x.dtype == (bfloat16 if dtype == "bfloat16" else dtype):
        return x
    if x.dtype == bfloat16:
        x = widened(x)
    if x.dtype.kind == "c" and dtype not in ("bool", "complex64", "complex128"):
        x = x.real
    if dtype == "bfloat16":
        return narrowed(x.astype("f4")).view(bfloat16)
    if x.dtype.kind == "f" and dtype.startswith(("int", "uint")):
        x = whole(x)
    return x.astype(dtype)


def require(fine: np.ndarray, error: Callable[[], Exception]) -> None:
    """Raise an error unless all of `fine` is true."""
    if not fine.all():
        raise error()


def slice_assign(
    x: np.ndarray, value: np.ndarray, *varying: Any, sizes: Any, steps: Any, starts: Any = ()
) -> np.ndarray:
    """Return a copy with a region replaced."""
    out = x.copy()
    out[arrays.region(varying or starts, sizes, steps)] = value
    return out


def scatter_add(x: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int) -> np.ndarray:
    """Return a copy with the entries of `source` added."""
    arrays.below(require, index, x.shape[dim] if x.ndim else 1)
    out = x.copy()
    np.add.at(out, arrays.places(np, index, dim), source)
    return out


def index_add(x: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int) -> np.ndarray:
    """Return a copy with the rows of `source` added."""
    arrays.below(require, index, x.shape[dim])
    out = x.copy()
    np.add.at(out, arrays.rows(x, index, dim), source)
    return out


def index_copy(x: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int) -> np.ndarray:
    """Return a copy with rows replaced; the last of equal indices wins."""
    arrays.below(require, index, x.shape[dim])
    out = x.copy()
    out[arrays.rows(x, index, dim)] = source
    return out


def masked_rows_scatter(x: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return a copy with the rows replaced for which a mask is true."""
    out = x.copy()
    out[mask] = source
    return out


class NumPyEngine(Engine):
    """Keeps tensors as NumPy arrays."""

    name = "numpy"
    #: The NumPy dtype that represents bfloat16.
    bfloat16 = BFLOAT16
    lowerings = {
        **arrays.lowerings(np, require, whole_power=np.power),
        "erf": lambda x: np.vectorize(math.erf, otypes=[float])(x),
        "slice_assign": slice_assign,
        "scatter_add": scatter_add,
        "index_add": index_add,
        "index_copy": index_copy,
        "nonzero": lambda x, count: np.argwhere(x),
        "masked_rows": lambda x, mask, count: x[mask],
        "masked_rows_scatter": masked_rows_scatter,
    }

    @property
    def arithmetic(self) -> str:
        """Return the version of NumPy and the architecture of the CPU."""
        return f"{self.name} {np.__version__} on {platform.machine()}"

    def create(self, data: memoryview, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array with these values."""
        kept = self.bfloat16 if dtype == "bfloat16" else dtype
        return np.frombuffer(data, kept).reshape(shape)

    def read(self, tensor: np.ndarray) -> np.ndarray:
        """Return an array's values."""
        return np.ascontiguousarray(tensor).reshape(-1).view("u1")

    def buffer(self, tensor: np.ndarray) -> tuple[int, int]:
        """Return the address and size of the memory that an array is in or is a view of."""
        while isinstance(tensor.base, np.ndarray):
            tensor = tensor.base
        return tensor.__array_interface__["data"][0], tensor.nbytes

    def is_contiguous(self, tensor: np.ndarray) -> bool:
        """Return whether an array is in C order."""
        return bool(tensor.flags.c_contiguous)

    def copy(self, tensor: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return tensor.copy()

    def describe(self, tensor: np.ndarray) -> Meta:
        """Return an array's dtype and shape."""
        dtype = "bfloat16" if tensor.dtype == self.bfloat16 else tensor.dtype.name
        return Meta(dtype, tensor.shape)

    def lowering(self, signature: Signature) -> Function:
        """Return a function that converts the operands, computes, and converts the result."""
        if signature.operation not in self.lowerings:
            return self.natively(signature)
        function = arrays.chosen(self.lowerings, signature)
        dtypes, result, bfloat16 = taken_as(signature), signature.output, self.bfloat16

        # Floating-point errors such as division by zero yield inf or NaN without a warning.
        @np.errstate(all="ignore")
        def compute(*values: Any, **attributes: Any) -> np.ndarray:
            taken = [
                converted(value, dtype, bfloat16)
                for value, dtype in zip(values, dtypes, strict=True)
            ]
            return converted(function(*taken, **attributes), result, bfloat16)

        return compute
