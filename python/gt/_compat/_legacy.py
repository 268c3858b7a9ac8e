"""PyTorch's legacy constructors: `gt.Tensor(...)`, `gt.FloatTensor(...)` and the other dtypes'."""

from __future__ import annotations

from typing import Any

from gt import _gt
from gt._gt import Tensor, public_function
from gt._public import show_callers_of_methods
from gt._size import Size
from gt.ops.likes import made_of
from gt.ops.registry import extend_tensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
]


class _TensorType(type):
    """The metaclass of the types `gt.FloatTensor`, `gt.LongTensor`, ...: one for each dtype."""

    dtype: Any

    def __call__(cls, *data: Any) -> Tensor:
        return new_tensor(data, cls.dtype)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype


def new_tensor(data: tuple[Any, ...], dtype: Any = None) -> Tensor:
    """Return a new tensor, as PyTorch's legacy constructors do.

    Args:
        data: one list, array or tensor of values; or the lengths of axes, for a tensor of zeros;
            or nothing, for an empty tensor.
        dtype: the dtype; None for the default one.

    >>> gt.Tensor([1, 2])
    tensor([1., 2.], dtype=float32)
    """
    dtype = _gt.default_dtype() if dtype is None else dtype
    if not data:
        return _gt.zeros(0, dtype=dtype)
    if len(data) == 1 and isinstance(data[0], Size):
        return _gt.zeros(tuple(data[0]), dtype=dtype)
    if all(isinstance(each, int) and not isinstance(each, bool) for each in data):
        return _gt.zeros(tuple(data), dtype=dtype)
    if len(data) == 1:
        if isinstance(data[0], Tensor):
            return data[0].detach().to(dtype)
        return made_of(_gt.tensor, data[0], dtype)
    raise TypeError(
        f"new: got arguments of types {[type(each).__name__ for each in data]}, expected one list, "
        "array or tensor of values, or the lengths of axes as ints"
    )


show_callers_of_methods(_TensorType)


#: What `gt.Tensor(...)` calls.
public_new_tensor = public_function(new_tensor, "Tensor")


def _type(name: str, dtype: Any) -> _TensorType:
    doc = f"Constructs {dtype.name} tensors from values or lengths; `isinstance` tests the dtype."
    return _TensorType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "gt"})


BFloat16Tensor = _type("BFloat16Tensor", _gt.bfloat16)
BoolTensor = _type("BoolTensor", _gt.bool)
ByteTensor = _type("ByteTensor", _gt.uint8)
CharTensor = _type("CharTensor", _gt.int8)
DoubleTensor = _type("DoubleTensor", _gt.float64)
FloatTensor = _type("FloatTensor", _gt.float32)
HalfTensor = _type("HalfTensor", _gt.float16)
IntTensor = _type("IntTensor", _gt.int32)
LongTensor = _type("LongTensor", _gt.int64)
ShortTensor = _type("ShortTensor", _gt.int16)


def _new(tensor: Tensor, *data: Any, device: Any = None) -> Tensor:
    """Return a tensor of this one's dtype: of values, or of zeros with the given lengths."""
    return new_tensor(data, tensor.dtype)


extend_tensor(new=_new)
