"""The reference results: those of the native engine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gt.engines import native
from gt.engines.check.values import get, kind_of, meta_of, put, to_array, to_bytes
from gt.engines.engine import Engine, Function, Meta, Signature


def _over(dim: Any, x: np.ndarray) -> tuple[int, ...]:
    return tuple(dim) if dim and x.ndim else tuple(range(x.ndim))


def _var(x: np.ndarray, dim: Any, keepdim: bool, correction: float) -> np.ndarray:
    axes = _over(dim, x)
    count = np.prod([x.shape[axis] for axis in axes])
    deviation = np.abs(x - x.mean(axis=axes, keepdims=True)) ** 2
    return deviation.sum(axis=axes, keepdims=keepdim) / np.maximum(count - correction, 0)


def _logsumexp(x: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    axes = _over(dim, x)
    top = np.max(x.real, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.exp(x - top).sum(axis=axes, keepdims=True)) + top
    return total if keepdim else total.squeeze(axes)


#: Operations that the native engine does not lower, in NumPy, with float64 or complex128.
_BY_NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "place": lambda x: x,
    "var": _var,
    "std": lambda x, **attributes: np.sqrt(_var(x, **attributes)),
    "logsumexp": _logsumexp,
}


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor of the reference engine: its values as bytes."""

    meta: Meta
    data: bytes


class Reference(Engine):
    """Keeps tensors as bytes, and computes on the native engine."""

    name = "reference"

    def create(self, data: memoryview, dtype: str, shape: tuple[int, ...]) -> Held:
        """Return a tensor with these values."""
        return Held(Meta(dtype, tuple(shape)), bytes(data))

    def read(self, tensor: Held) -> bytes:
        """Return a tensor's values."""
        return tensor.data

    def describe(self, tensor: Held) -> Meta:
        """Return a tensor's dtype and shape."""
        return tensor.meta

    def lowers(self, operation: str) -> bool:
        """Return whether the native engine lowers an operation without expanding it."""
        return operation not in native.DRAWN | _BY_NUMPY.keys() - {"place"}

    def lowering(self, signature: Signature) -> Function:
        """Return a function that computes an operation."""
        if signature.operation not in _BY_NUMPY:
            return self.natively(signature)
        function, dtype = _BY_NUMPY[signature.operation], signature.output

        def compute(x: Held, **attributes: Any) -> Held:
            wide = "complex128" if x.meta.dtype.startswith("complex") else "float64"
            with np.errstate(all="ignore"):
                given = to_array(x.data, x.meta)
                if signature.operation != "place":
                    given = given.astype(wide)
                made = function(given, **attributes)
                return Held(Meta(dtype, made.shape), to_bytes(made, dtype))

        return compute


def metas(
    operation: str, operands: list[Any], dtypes: list[Any], attributes: dict[str, Any]
) -> list[Meta]:
    """Return the dtype and shape of each result of an operation.

    Raises `ValueError` if the operation rejects the operands.
    """
    given = tuple(map(meta_of, operands, dtypes))
    return native.results(operation, given, attributes)


def results(
    operation: str, operands: list[Any], dtypes: list[Any], attributes: dict[str, Any]
) -> list[np.ndarray]:
    """Return the values of each result of an operation; the dtype of a number is None.

    Raises the native engine's error if the operation fails for these operands.
    """
    engine, given = Reference(), (operation, operands, dtypes, attributes)
    kinds = tuple(map(kind_of, operands, dtypes))
    function = engine.lowering(Signature(operation, kinds, metas(*given)[0].dtype))
    named = {name: value for name, value in attributes.items() if name != "dtype"}
    values = [put(engine, *pair) for pair in zip(operands, dtypes, strict=True)]
    made = function(*values, **named)
    return [get(engine, tensor) for tensor in (made if isinstance(made, tuple) else (made,))]
