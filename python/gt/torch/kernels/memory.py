"""Copies between the host and the cluster, views, and storages."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

import gt
from gt._gt import torch_device
from gt.torch import dtypes
from gt.torch.kernels import raw
from gt.torch.kernels.creation import check_device, check_layout, empty, empty_strided, strides_of

_aten = torch.ops.aten
#: The dispatch key of CPU kernels, for those that use only sizes, strides and storages.
_ON_HOST = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


#: The cluster's device, by PyTorch's name for it before "cluster" is registered. Code compares
#: devices, not `device.type`, which creates a new string at each access.
_CLUSTER = torch.device("privateuseone", 0)


def from_host(tensor: torch.Tensor) -> gt.Tensor:
    """Copy a host tensor to the cluster."""
    dtype = dtypes.to_gt(tensor.dtype)
    if tensor.layout != torch.strided:
        raise RuntimeError(
            f"the device cluster has no tensors of layout {tensor.layout}\n"
            "  hint: convert it by to_dense()"
        )
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if dtype == gt.bfloat16:
        return gt.from_numpy(tensor.float().numpy()).to(gt.bfloat16)
    return gt.from_numpy(np.ascontiguousarray(tensor.numpy()).reshape(tensor.shape))


def from_host_beside(tensor: torch.Tensor, beside: list[torch.Tensor]) -> gt.Tensor:
    """Copy a host tensor to the cluster, in the dtype of its promotion with other tensors.

    Python numbers in an expression are such tensors too: 0-d and float64, but weakly typed.
    """
    dtype = tensor.dtype
    found = [torch.result_type(other, tensor) for other in beside]
    if found:
        dtype = functools.reduce(torch.promote_types, found)
    return from_host(tensor.to(dtype))


def to_host(tensor: gt.Tensor) -> torch.Tensor:
    """Copy a tensor to the host."""
    tensor = tensor.detach()
    if tensor.dtype == gt.bfloat16:
        return torch.from_numpy(tensor.float().numpy()).to(torch.bfloat16)
    array = tensor.numpy()
    return torch.from_numpy(array if array.flags.writeable else array.copy())


_in_dtype = torch_device.Kernel("aten::_to_copy", gt.Tensor.to, True)


@raw("_to_copy")
def _to_copy(
    self: torch.Tensor,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=None,
    non_blocking=False,
    memory_format=None,
) -> torch.Tensor:
    """Copy a tensor to another dtype or device."""
    check_layout(layout)
    if device is not None and device.type == "cluster":
        check_device(device)
    stays = self.device == _CLUSTER and (device is None or device.type == "cluster")
    if stays and dtype is not None and memory_format in (None, torch.preserve_format):
        return _in_dtype(self.resolve_conj().resolve_neg(), dtype)
    made = torch.empty_like(
        self, dtype=dtype, device=device, memory_format=memory_format or torch.preserve_format
    )
    return made.copy_(self, non_blocking)


@raw("copy_")
def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy the elements of one tensor to another, within the cluster or from or to the host."""
    if not self.numel() and self.shape == src.shape:
        return self
    if self.device != _CLUSTER:
        return self.copy_(to_host(seen(src)))
    if src.device == _CLUSTER:
        values = seen(src)
    elif src.is_cpu and _is_row_of_bytes(self) and src.dtype == torch.uint8:
        # The bytes may represent another dtype, as when a storage is loaded from a file.
        host = src.expand(self.shape).contiguous()
        torch_device.fill_storage(self.data_ptr(), host.numpy().tobytes())
        return self
    elif src.is_cpu:
        # Send the source's dtype if the cluster has it, and cast there.
        values = from_host(src if src.dtype in dtypes.BY_TORCH else src.to(self.dtype))
    else:
        raise RuntimeError(f"copy_: from {src.device} to the cluster; copy to the CPU first")
    if values.dtype != dtypes.to_gt(self.dtype):
        values = values.to(dtypes.to_gt(self.dtype))
    if src.shape != self.shape:
        if torch._C._infer_size(self.shape, src.shape) != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(src.shape)}"
            )
        values = values.expand(tuple(self.shape))
    values = values.conj() if self.is_conj() else values
    torch_device.write(self, -values if self.is_neg() else values, "copy_")
    return self


def _is_row_of_bytes(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a view of all bytes of its storage."""
    is_bytes = tensor.dtype == torch.uint8 and tensor.is_contiguous() and tensor.numel() > 0
    return is_bytes and tensor.numel() == tensor.untyped_storage().nbytes()


def seen(tensor: torch.Tensor) -> gt.Tensor:
    """Return a tensor's values, with lazy conjugation and negation resolved."""
    values = torch_device.read(tensor)
    values = values.conj() if tensor.is_conj() else values
    return -values if tensor.is_neg() else values


_in_its_order = torch_device.Kernel("aten::clone", lambda self: self, True)
_contiguous = torch_device.Kernel("aten::clone", lambda self: self)


@raw("clone")
def clone(self: torch.Tensor, *, memory_format: Any = None) -> torch.Tensor:
    """Copy a tensor, with its own strides unless a memory format is given."""
    if memory_format == torch.contiguous_format and not (self.is_conj() or self.is_neg()):
        return _contiguous(self)
    if self.is_conj() or self.is_neg() or memory_format not in (None, torch.preserve_format):
        strides = strides_of(self.shape, memory_format)
        return copy_(empty_strided(self.shape, strides, dtype=self.dtype), self)
    return _in_its_order(self)


@raw("_copy_from")
def _copy_from(self, dst, non_blocking=False) -> torch.Tensor:
    """Copy into another tensor."""
    return copy_(dst, self, non_blocking)


@raw("_copy_from_and_resize")
def _copy_from_and_resize(self, dst) -> torch.Tensor:
    """Copy into another tensor, which is resized to the shape."""
    return copy_(dst.resize_(self.shape), self)


@raw("_local_scalar_dense")
def _local_scalar_dense(self: torch.Tensor) -> Any:
    """Return the only element as a number."""
    return torch_device.read(self).item()


def _on_host(name: str, overload: str = "default") -> Any:
    """Return a CPU kernel, of an operator that does not read elements."""
    redispatch = getattr(getattr(_aten, name), overload).redispatch

    def kernel(*args: Any, **kwargs: Any) -> Any:
        return redispatch(_ON_HOST, *args, **kwargs)

    kernel.__name__ = name
    return kernel


for _name in ("unfold", "view_as_real", "view_as_complex"):
    raw(_name)(_on_host(_name))
raw("set_.source_Storage_storage_offset")(_on_host("set_", "source_Storage_storage_offset"))
raw("set_.source_Tensor")(_on_host("set_", "source_Tensor"))


@raw("view.dtype")
def view_dtype(self: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Raise `RuntimeError`: the bits of elements cannot be viewed as another dtype."""
    if dtype == self.dtype:
        return self.view(self.shape)
    raise RuntimeError(
        f"view: the bits of {self.dtype} on the cluster cannot be viewed as {dtype}\n"
        "  hint: x.to(dtype) converts the numbers; x.cpu().view(dtype) views their bits"
    )


@raw("_has_compatible_shallow_copy_type")
def _has_compatible_shallow_copy_type(self, from_) -> bool:
    """Return True: `x.data = y` may adopt y's memory, even from another device."""
    return True


@raw("resize_")
def resize_(self: torch.Tensor, size, *, memory_format=None) -> torch.Tensor:
    """Change a tensor's shape in place; its storage grows if it is too short.

    Raises:
        RuntimeError: The storage must grow, but other tensors share it.
    """
    if list(self.shape) == list(size) and memory_format is None:
        return self
    count, offset = 1, self.storage_offset()
    for length in size:
        count *= length
    storage = self.untyped_storage()
    needed = (offset + count) * self.element_size() if count else 0
    if needed > storage.nbytes():
        # Two references are the tensor's and `storage`.
        if storage.nbytes() and torch._C._storage_Use_Count(storage._cdata) > 2:
            raise RuntimeError(
                f"resize_: a storage of {storage.nbytes()} bytes that several tensors share "
                f"cannot grow to {needed} on the device cluster\n  hint: clone() it first"
            )
        storage = _grown(self, offset + count)
    _aten.set_.source_Storage_storage_offset.redispatch(
        _ON_HOST, self, storage, offset, size, strides_of(size, memory_format)
    )
    return self


def _grown(tensor: torch.Tensor, count: int) -> torch.UntypedStorage:
    """Return a storage for `count` elements that begins with the contents of a tensor's."""
    old = tensor.untyped_storage()
    longer = empty([count], dtype=tensor.dtype)
    if old.nbytes():
        row = torch.empty(0, dtype=tensor.dtype, device="cluster").set_(old)
        longer[: row.numel()].copy_(row)
    return longer.untyped_storage()


def resize_out(out: torch.Tensor, size: tuple[int, ...]) -> None:
    """Resize an `out` tensor, with PyTorch's warning if it has elements."""
    if out.numel():
        import warnings

        warnings.warn(
            "An output with one or more elements was resized since it had shape "
            f"{list(out.shape)}, which does not match the required output shape {list(size)}. "
            "This behavior is deprecated, and in a future PyTorch release outputs will not be "
            "resized unless they have zero elements.",
            stacklevel=2,
        )
    resize_(out, list(size))


@raw("set_.source_Storage")
def set_storage(self: torch.Tensor, source: torch.UntypedStorage) -> torch.Tensor:
    """Make a tensor a 1-d view of all of a storage."""
    count = source.nbytes() // self.element_size()
    return _aten.set_.source_Storage_storage_offset.redispatch(
        _ON_HOST, self, source, 0, [count], [1]
    )


@raw("_assert_async", "_assert_async.msg", "_functional_assert_async.msg")
def assert_async(self: torch.Tensor, message: str = "", token: Any = None) -> Any:
    """Raise an error if the only element is 0; blocks until it is computed."""
    if not torch_device.read(self).item():
        raise RuntimeError(message or "Expected a value that is not 0")
    return token


@raw("set_")
def set_(self: torch.Tensor) -> torch.Tensor:
    """Make a tensor empty."""
    return resize_(self, [0])


@raw("is_same_size")
def is_same_size(self: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors, possibly on different devices, have equal shapes."""
    return self.shape == other.shape


@raw("is_set_to")
def is_set_to(self: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Return whether two tensors are the same view of the same storage."""

    def where(one: torch.Tensor) -> tuple[Any, ...]:
        return one.data_ptr(), one.shape, one.stride()

    return where(self) == where(tensor)


@raw("record_stream")
def record_stream(self, s):
    """Do nothing: the session's one order of instructions keeps memory until its last use."""
