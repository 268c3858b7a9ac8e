"""Conversions to other dtypes and devices, and questions about a tensor's kind."""

from __future__ import annotations

import difflib
from typing import Any

from gt._device import CLUSTER, DEVICES, check_index, check_target, is_device
from gt._gt import Tensor, parse_dtype
from gt.ops.registry import extend_tensor, function

#: The methods that cast, and the dtype that each casts to.
_CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def _cast_to(name: str, dtype: str) -> None:
    """Add the method that casts to one dtype."""
    wanted = parse_dtype(dtype)

    def cast(self: Tensor, memory_format: Any = None) -> Tensor:
        return self._cast(wanted)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return the values as {dtype}; the tensor itself if it has that dtype."
    extend_tensor(**{name: cast})


for _name, _dtype in _CASTS.items():
    _cast_to(_name, _dtype)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the values in the dtype of `to(dtype)`, `to(device, dtype)` or `to(other)`.

    All tensors are on the cluster: a device is accepted, for the sake of PyTorch programs, and has
    no effect. If the tensor has the dtype already, it is returned itself, unless `copy`.

    >>> gt.ones(2).to(gt.int64)
    tensor([1, 1], dtype=int64)
    """
    dtype, copy = wanted_dtype(args, kwargs)
    result = self if dtype is None else self._cast(dtype)
    return result.clone() if copy and result is self else result


def wanted_dtype(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool]:
    """Return the dtype among the arguments of `to`, or None, and whether a copy is asked for."""
    kwargs = dict(kwargs)
    given = [*args, *(kwargs.pop(name, None) for name in ("device", "dtype", "other", "tensor"))]
    copy = kwargs.pop("copy", False)
    for ignored in ("non_blocking", "memory_format"):
        kwargs.pop(ignored, None)
    if kwargs:
        raise TypeError(f"to: there is no parameter '{next(iter(kwargs))}'")
    dtype = None
    for value in given:
        if isinstance(value, Tensor):
            dtype = value.dtype
        elif isinstance(value, bool):  # non_blocking and copy may follow by position
            continue
        elif isinstance(value, int) or is_device(value):
            check_target(value)
        elif value is not None:
            dtype = _parsed(value)
    return dtype, copy


def _parsed(given: Any) -> Any:
    """Return a dtype by any of its names, or raise an error that also names the devices."""
    try:
        return parse_dtype(given)
    except TypeError as error:
        if not isinstance(given, str):
            raise
        dtypes = dict.fromkeys(_CASTS.values())
        near = difflib.get_close_matches(given, [*DEVICES, *dtypes], n=1)
        near = near or ["cuda"] * ("gpu" in given.lower())
        hint = f"did you mean {near[0]!r}?" if near else "tensors need no device"
        raise TypeError(
            f"to: {given!r} is neither a dtype ({', '.join(dtypes)}) nor a device "
            f"({', '.join(DEVICES)})\n  hint: {hint}"
        ) from error.__cause__


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """Return the tensor itself: the dispatcher decides where its values are.

    >>> x = gt.ones(2)
    >>> x.cpu() is x
    True
    """
    return self


def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """Return the tensor itself: the dispatcher decides which GPU computes.

    >>> x = gt.ones(2)
    >>> x.cuda() is x
    True
    """
    if device is not None:
        check_index(device)
    return self


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the values in the dtype of another tensor.

    >>> gt.ones(2).type_as(gt.zeros(1, dtype=gt.int64)).dtype
    gt.int64
    """
    return self._cast(other.dtype)


#: The names of PyTorch's tensor types, by dtype.
_TYPES = {
    **{dtype: f"gt.{name.title()}Tensor" for name, dtype in _CASTS.items()},
    "bfloat16": "gt.BFloat16Tensor",
    "complex64": "gt.ComplexFloatTensor",
    "complex128": "gt.ComplexDoubleTensor",
}


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Tensor | str:
    """Return the values in another dtype; without one, the name of the tensor's type in PyTorch.

    >>> gt.ones(2).type(), gt.ones(2).type(gt.float64).dtype
    ('gt.FloatTensor', gt.float64)
    """
    if dtype is None:
        return _TYPES[self.dtype.name]
    # The types themselves, such as gt.FloatTensor, have their name as well.
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
    name = name.rpartition(".")[2]
    named = [of for of, type_name in _TYPES.items() if type_name == f"gt.{name}"]
    return self._cast(parse_dtype(named[0] if named else dtype))


extend_tensor(
    to=to,
    cpu=cpu,
    cuda=cuda,
    type=type_,
    type_as=type_as,
    device=property(lambda self: CLUSTER, doc="The device of all tensors: the cluster."),
    is_cuda=property(lambda self: False, doc="False: the cluster is the one device."),
)


@function
def numel(input: Tensor) -> int:
    """Return the number of elements.

    >>> gt.numel(gt.ones(2, 3))
    6
    """
    return input.numel()


@function
def is_tensor(obj: object) -> bool:
    """Return whether an object is a tensor.

    >>> gt.is_tensor(gt.ones(2)), gt.is_tensor(2)
    (True, False)
    """
    return isinstance(obj, Tensor)
