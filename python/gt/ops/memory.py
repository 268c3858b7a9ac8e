"""Questions of PyTorch programs about a tensor's memory and device."""

from __future__ import annotations

from typing import Any, NoReturn

import gt
from gt._gt import Tensor
from gt.ops.registry import extend_tensor, operation
from gt.ops.sizes import method

_NO = {
    "is_cpu": "in the memory of this process",
    "is_sparse": "sparse",
    "is_sparse_csr": "sparse",
    "is_quantized": "quantized",
    "is_meta": "without values",
    "is_nested": "nested",
    "is_mkldnn": "in the private layout of a library",
    "is_mps": "on an Apple GPU",
    "is_xpu": "on an Intel GPU",
}
for _name, _kind in _NO.items():
    _never = property(lambda self: False, doc=f"Whether it is {_kind}: never.")
    extend_tensor(**{_name: _never})
extend_tensor(
    layout=property(lambda self: gt.strided, doc="How elements lie in memory: `gt.strided`.")
)


@operation
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    >>> gt.is_same_size(gt.ones(2), gt.ones(3))
    False
    """
    return input.shape == other.shape


@operation
def is_nonzero(input: Tensor) -> bool:
    """Return whether a single number is not 0.

    >>> gt.is_nonzero(gt.tensor([0.0]))
    False
    """
    if input.numel() != 1:
        raise RuntimeError(
            f"is_nonzero: a tensor of shape {input.shape} has {input.numel()} values, expected one"
        )
    return bool(input.item())


@operation
def is_inference(input: Tensor) -> bool:
    """Return False: `inference_mode` is `no_grad`, so tensors can always be recorded later.

    >>> gt.is_inference(gt.ones(1))
    False
    """
    return False


@operation
def get_device(input: Tensor) -> int:
    """Return -1: the user has chosen no GPU.

    >>> gt.ones(1).get_device()
    -1
    """
    return -1


@method
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Return whether two names refer to the same tensor.

    >>> x = gt.ones(2)
    >>> x.is_set_to(x)
    True
    """
    return input is tensor


@method
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Return False: workers choose the memory of tensors.

    >>> gt.ones(1).is_pinned()
    False
    """
    return False


@method
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """Return the tensor itself: workers choose how values are transferred.

    >>> gt.ones(1).pin_memory()
    tensor([1.], dtype=float32)
    """
    return input


@method
def is_shared(input: Tensor) -> bool:
    """Return False: no other process can write to a tensor.

    >>> gt.ones(1).is_shared()
    False
    """
    return False


@method
def to_dense(input: Tensor, dtype: Any = None) -> Tensor:
    """Return the tensor itself, as none is sparse, cast to a dtype if one is given.

    >>> gt.ones(1).to_dense()
    tensor([1.], dtype=float32)
    """
    return input if dtype is None else input.to(dtype)


@method(aliases=("storage", "untyped_storage", "share_memory_"))
def data_ptr(input: Tensor) -> NoReturn:
    """Raise RuntimeError: the values are in the memory of workers, and have no local address.

    >>> gt.ones(1).data_ptr()
    Traceback (most recent call last):
    RuntimeError: data_ptr: the memory of a tensor is its worker's, with no address in this process
      hint: x.numpy() copies the values here; x.is_set_to(y) shows whether two names are one tensor
    """
    raise RuntimeError(
        "the memory of a tensor is its worker's, with no address in this process\n"
        "  hint: x.numpy() copies the values here; x.is_set_to(y) shows whether two names are one "
        "tensor"
    )


@method
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Store a number on the main diagonal.

    Args:
        input: a tensor of two axes, or of more axes of equal length.
        fill_value: the number.
        wrap: whether the diagonal of a matrix with more rows than columns starts again at the first
            column, one row below its end.

    >>> gt.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    if input.ndim < 2 or (input.ndim > 2 and len(set(input.shape)) > 1):
        raise RuntimeError(
            f"fill_diagonal_: shape is {input.shape}, expected two axes, or more of equal length"
        )
    stride = sum(gt.Size(input.shape[axis + 1 :]).numel() for axis in range(input.ndim))
    count = min(input.shape) * stride if not wrap and input.shape[0] > input.shape[1] else None
    values = input.reshape(-1).clone()
    values[: count if input.ndim == 2 else None : stride] = fill_value
    return input.copy_(values.reshape(input.shape))


def _shallow(tensor: Tensor) -> Tensor:
    """Return the result of `copy.copy`: a leaf of the tensor's class that shares its memory."""
    copied = tensor.detach()
    if type(tensor) is not Tensor:
        copied = Tensor.__new__(type(tensor), copied)
        copied.__dict__.update(tensor.__dict__)
    return copied.requires_grad_(tensor.requires_grad)


extend_tensor(__copy__=_shallow)
