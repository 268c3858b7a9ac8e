"""`torch.cluster.FloatTensor` and its kin: a type for each dtype, as early PyTorch had them."""

from __future__ import annotations

import functools
from typing import Any

import torch

#: The names of tensor types, and of storage types, without their ending.
_DTYPES = {
    "BFloat16": torch.bfloat16,
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}
_COMPLEX = {"ComplexDouble": torch.complex128, "ComplexFloat": torch.complex64}


class _TensorType(type):
    """The type of tensor types: an instance is a tensor of its dtype on the device."""

    dtype: torch.dtype
    layout = torch.strided
    is_cuda = False
    is_cluster = True

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.device.type == "cluster"
            and instance.dtype == cls.dtype
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Return a tensor of a shape, or with the elements of a sequence or tensor."""
        return torch.empty(0, dtype=cls.dtype, device="cluster").new(*args, **kwargs)


def _tensor_type(name: str, dtype: torch.dtype) -> type:
    # Its C name is what `x.type(torch.cluster.FloatTensor)` reads.
    made = _TensorType(f"torch.cluster.{name}", (), {"dtype": dtype, "__module__": "torch.cluster"})
    made.__qualname__ = name
    made.__doc__ = f"Tensors of {dtype} on the device."
    return made


def _storage_type(name: str, dtype: torch.dtype) -> type:
    # PyTorch reads the device from the name of the module.
    body = {"dtype": dtype, "_dtype": dtype, "__module__": "torch.cluster"}
    made = type(torch.storage._LegacyStorage)(name, (torch.storage._LegacyStorage,), body)
    made.__doc__ = f"Storages of {dtype} on the device."
    return made


TENSORS = {f"{name}Tensor": _tensor_type(f"{name}Tensor", of) for name, of in _DTYPES.items()}
STORAGES = {
    f"{name}Storage": _storage_type(f"{name}Storage", of)
    for name, of in {**_DTYPES, **_COMPLEX}.items()
}


def setting_type(otherwise: Any) -> Any:
    """Wrap `torch.set_default_tensor_type`, whose C++ code refuses other types than its own."""
    is_default = False

    @functools.wraps(otherwise)
    def set_default_tensor_type(t: Any, /) -> None:
        nonlocal is_default
        name = t if isinstance(t, str) else getattr(t, "__name__", "")
        kind = TENSORS.get(name.removeprefix("torch.cluster."))
        if kind is None or not name.startswith("torch.cluster."):
            otherwise(t)
            if is_default:
                torch.set_default_device(None)
                is_default = False
            torch.set_default_dtype(torch.get_default_dtype())
            return
        if not kind.dtype.is_floating_point:  # type: ignore[attr-defined]
            raise TypeError(
                "only floating-point types are supported as the default type, "
                f"not torch.cluster.{kind.__qualname__}"
            )
        torch.set_default_dtype(kind.dtype)  # type: ignore[attr-defined]
        torch.set_default_device("cluster")
        is_default = True

    return set_default_tensor_type
