"""Tensors made from data, and tensors with the shape or dtype of another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gt
from gt import _gt
from gt._gt import Tensor
from gt.ops.annotations import Device, DType, Number, Size
from gt.ops.create import beside, creation, lengths
from gt.ops.registry import function
from gt.ops.sizes import method


@function(takes_arrays=True)
@creation
def tensor(data: Any, *, dtype: DType | None = None) -> Tensor:
    """Make a tensor from a number, nested lists of numbers, an array, or a copy of a tensor.

    >>> gt.tensor([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    return made_of(_gt.tensor, data, dtype)


@function(takes_arrays=True)
@creation
def as_tensor(data: Any, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a tensor itself if its dtype fits, else make one as `tensor` does.

    >>> x = gt.ones(2)
    >>> gt.as_tensor(x) is x
    True
    """
    return made_of(_gt.as_tensor, data, dtype)


@function(takes_arrays=True)
@creation
def asarray(obj: Any, *, dtype: DType | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor itself if its dtype fits and no copy is asked for, else make one.

    Args:
        obj: a tensor, an array, a number or a list.
        dtype: the dtype; by default that of `obj`.
        copy: True for a copy in any case, False for an error where a copy is needed.

    Raises:
        ValueError: `copy` is False, and `obj` is no tensor of the dtype.

    >>> gt.asarray([1.0, 2.0])
    tensor([1., 2.], dtype=float32)
    """
    made = made_of(_gt.tensor if copy else _gt.as_tensor, obj, dtype)
    if copy is False and made is not obj:
        raise ValueError(
            f"asarray: copy is False, but a tensor of {made.dtype} has to be a copy of what is "
            f"given, of type {type(obj).__name__}\n  hint: leave copy out"
        )
    return made


def made_of(make: Callable[..., Tensor], data: Any, dtype: DType | None) -> Tensor:
    """Return the tensor of data, in which other sequences than lists may stand for lists."""
    try:
        return make(data, dtype=dtype)
    except TypeError:
        plain = _as_lists(data)
        if plain is data:
            raise
    return make(plain, dtype=dtype)


def _as_lists(data: Any) -> Any:
    """Return nested sequences, such as a deque, as nested lists; all else stays."""
    if isinstance(data, (str, bytes, Mapping, Tensor)) or hasattr(data, "__array__"):
        return data
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        return data
    items = [_as_lists(item) for item in data]
    same = isinstance(data, (list, tuple)) and all(a is b for a, b in zip(items, data, strict=True))
    return data if same else items


@function(takes_arrays=True)
def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Make a tensor from an array of any library that supports DLPack; it copies the values.

    Args:
        ext_tensor: an object with `__dlpack__`, in the memory of this process, or its capsule.
        device: accepted and without effect: all tensors are on the cluster.
        copy: must not be False, as the values are sent to a worker.

    >>> gt.from_dlpack(gt.ones(2))
    tensor([1., 1.], dtype=float32)
    """
    import numpy as np  # slow to import

    if copy is False:
        raise ValueError("from_dlpack: copy is False, but the values are sent to a worker")
    kind = type(ext_tensor).__name__
    if kind == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected an object with __dlpack__, not {kind}")
    try:
        return _gt.from_numpy(np.array(np.from_dlpack(ext_tensor)))
    except RuntimeError:
        bits = _bits_of_bfloat16(ext_tensor)
        if bits is None:
            raise
        return _from_bits(bits)


def _bits_of_bfloat16(ext_tensor: Any) -> Any:
    """Return the bits of an exporter's bfloat16 numbers, which NumPy lacks; None for others."""
    import numpy as np

    from gt import _dlpack

    capsule = ext_tensor.__dlpack__()
    return np.from_dlpack(_Capsule(capsule)) if _dlpack.replace_bfloat16(capsule) else None


def _from_bits(bits: Any) -> Tensor:
    """Make a tensor of bfloat16, the upper 16 bits of float32."""
    return _gt.from_numpy((bits.astype("uint32") << 16).view("float32"))._cast(gt.bfloat16)


class _Capsule:
    """An exporter for a bare DLPack capsule, of an array in the memory of this process."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@function
def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule with a copy of the values.

    >>> type(gt.to_dlpack(gt.ones(1))).__name__
    'PyCapsule'
    """
    return tensor.__dlpack__()


@function(takes_arrays=True)
@creation
def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0) -> Tensor:
    """Make a tensor of one axis from the bytes of an object; it copies them.

    Args:
        buffer: bytes, or another object with a buffer.
        dtype: the dtype of the elements.
        count: the number of elements; -1 for all.
        offset: the number of bytes to skip at the start.

    >>> gt.frombuffer(b"\\x01\\x02", dtype=gt.uint8)
    tensor([1, 2], dtype=uint8)
    """
    import numpy as np  # slow to import

    kind = _gt.parse_dtype(dtype)
    rest, size = memoryview(buffer).nbytes - offset, kind.itemsize
    if offset < 0 or rest <= 0 or count == 0 or count * size > rest or (count < 0 and rest % size):
        raise ValueError(
            f"frombuffer: {count} elements of {size} bytes at offset {offset} do not fit a buffer "
            f"of {rest + offset} bytes; with count=-1 the rest must be whole elements"
        )
    name = "uint16" if kind.name == "bfloat16" else kind.name
    values = np.frombuffer(buffer, dtype=name, count=count, offset=offset).copy()
    return _from_bits(values) if kind.name == "bfloat16" else _gt.from_numpy(values)


@function
@creation
def zeros_like(input: Tensor, *, dtype: DType | None = None, memory_format: Any = None) -> Tensor:
    """Make zeros of a tensor's shape, and of its dtype unless another is given.

    >>> gt.zeros_like(gt.ones(2))
    tensor([0., 0.], dtype=float32)
    """
    return _gt.zeros_like(input, dtype=dtype)


@function
@creation
def ones_like(input: Tensor, *, dtype: DType | None = None, memory_format: Any = None) -> Tensor:
    """Make ones of a tensor's shape, and of its dtype unless another is given.

    >>> gt.ones_like(gt.zeros(2))
    tensor([1., 1.], dtype=float32)
    """
    return _gt.ones_like(input, dtype=dtype)


@function
@creation
def empty_like(input: Tensor, *, dtype: DType | None = None, memory_format: Any = None) -> Tensor:
    """Make a tensor of another one's shape and dtype, whose values do not matter.

    >>> gt.empty_like(gt.ones(2)).shape
    (2,)
    """
    return _gt.empty_like(input, dtype=dtype)


@function
@creation
def full_like(
    input: Tensor,
    fill_value: Tensor | Number,
    *,
    dtype: DType | None = None,
    memory_format: Any = None,
) -> Tensor:
    """Make a tensor of another one's shape, filled with one number, in its dtype by default.

    >>> gt.full_like(gt.zeros(2), 7)
    tensor([7., 7.], dtype=float32)
    """
    wanted = input.dtype if dtype is None else dtype
    if isinstance(fill_value, Tensor):
        return gt.full(input.shape, fill_value, dtype=wanted)
    return _gt.full_like(input, fill_value, dtype=wanted)


@method
@creation
def new_tensor(self: Tensor, data: Any, *, dtype: DType | None = None) -> Tensor:
    """Make a tensor from numbers, in this one's dtype unless another is given.

    >>> gt.zeros(1).new_tensor([1, 2])
    tensor([1., 2.], dtype=float32)
    """
    with beside(self):
        return _gt.tensor(data, dtype=self.dtype if dtype is None else dtype)


@method
@creation
def new_zeros(self: Tensor, *size: Size, dtype: DType | None = None) -> Tensor:
    """Make zeros in this tensor's dtype, unless another is given.

    >>> gt.ones(1).new_zeros(2)
    tensor([0., 0.], dtype=float32)
    """
    return _new(self, lengths("new_zeros", size), 0, dtype)


@method
@creation
def new_ones(self: Tensor, *size: Size, dtype: DType | None = None) -> Tensor:
    """Make ones in this tensor's dtype, unless another is given.

    >>> gt.zeros(1).new_ones(2)
    tensor([1., 1.], dtype=float32)
    """
    return _new(self, lengths("new_ones", size), 1, dtype)


@method
@creation
def new_empty(self: Tensor, *size: Size, dtype: DType | None = None) -> Tensor:
    """Make a tensor of this one's dtype, whose values do not matter.

    >>> gt.ones(1).new_empty(2, 3).shape
    (2, 3)
    """
    return _new(self, lengths("new_empty", size), 0, dtype)


@method
@creation
def new_full(
    self: Tensor, size: Size, fill_value: Tensor | Number, *, dtype: DType | None = None
) -> Tensor:
    """Make a tensor filled with one number, in this one's dtype unless another is given.

    >>> gt.zeros(1).new_full((2,), 7)
    tensor([7., 7.], dtype=float32)
    """
    return _new(self, size, fill_value, dtype)


@method
@creation
def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], *, dtype: DType | None = None
) -> Tensor:
    """Make a tensor of this one's dtype, whose values do not matter; `stride` has no effect.

    >>> gt.ones(1).new_empty_strided((2, 3), (1, 2)).shape
    (2, 3)
    """
    with beside(self):
        return gt.empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype)


def _new(like: Tensor, size: Size, value: Tensor | Number, dtype: DType | None) -> Tensor:
    """Fill a shape with a number, in a tensor's session and, by default, its dtype."""
    with beside(like):
        return gt.full(size, value, dtype=like.dtype if dtype is None else dtype)
