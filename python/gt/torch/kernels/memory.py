"""Making tensors, copying between the host and the cluster, and views."""

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
#: Kernels of the host that only look at sizes, strides and storage, never at elements.
_ON_HOST = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


#: The one device of the cluster, by the name that it has before ours is known. Devices are compared
#: as a whole: PyTorch writes the type of one anew each time that it is asked for.
_CLUSTER = torch.device("privateuseone", 0)


def from_host(tensor: torch.Tensor) -> gt.Tensor:
    """Bring a tensor of the host's to the cluster."""
    dtype = dtypes.to_gt(tensor.dtype)
    if tensor.layout != torch.strided:
        raise RuntimeError(
            f"the device cluster has no tensors of layout {tensor.layout}\n"
            "  hint: to_dense() gives one that it has"
        )
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if dtype == gt.bfloat16:
        return gt.from_numpy(tensor.float().numpy()).to(gt.bfloat16)
    return gt.from_numpy(np.ascontiguousarray(tensor.numpy()).reshape(tensor.shape))


def from_host_beside(tensor: torch.Tensor, beside: list[torch.Tensor]) -> gt.Tensor:
    """Bring a tensor of the host's to the cluster, in the dtype that it has with others.

    A number in an expression is such a tensor, too: float64, but as good as float32.
    """
    dtype = tensor.dtype
    found = [torch.result_type(other, tensor) for other in beside]
    if found:
        dtype = functools.reduce(torch.promote_types, found)
    return from_host(tensor.to(dtype))


def to_host(tensor: gt.Tensor) -> torch.Tensor:
    """Bring a tensor's values to the host."""
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
    """Copy a tensor, into another dtype or onto another device."""
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
    """Copy the elements of one tensor into another, within the cluster or across."""
    if not self.numel() and self.shape == src.shape:
        return self
    if self.device != _CLUSTER:
        return self.copy_(to_host(seen(src)))
    if src.device == _CLUSTER:
        values = seen(src)
    elif src.is_cpu and _is_row_of_bytes(self) and src.dtype == torch.uint8:
        # They may be another dtype's, as when a storage is read from a file.
        host = src.expand(self.shape).contiguous()
        torch_device.fill_storage(self.data_ptr(), host.numpy().tobytes())
        return self
    elif src.is_cpu:
        # Cast on the side with fewer bytes to send.
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
    """Whether a tensor shows all bytes of a storage, and nothing else."""
    is_bytes = tensor.dtype == torch.uint8 and tensor.is_contiguous() and tensor.numel() > 0
    return is_bytes and tensor.numel() == tensor.untyped_storage().nbytes()


def seen(tensor: torch.Tensor) -> gt.Tensor:
    """Give what a tensor shows, as its marks for conjugate and negative numbers say."""
    values = torch_device.read(tensor)
    values = values.conj() if tensor.is_conj() else values
    return -values if tensor.is_neg() else values


_in_its_order = torch_device.Kernel("aten::clone", lambda self: self, True)
_contiguous = torch_device.Kernel("aten::clone", lambda self: self)


@raw("clone")
def clone(self: torch.Tensor, *, memory_format: Any = None) -> torch.Tensor:
    """Copy a tensor; the elements lie as its own do, unless a format is given."""
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
    """Copy into another tensor, which takes on the shape."""
    return copy_(dst.resize_(self.shape), self)


@raw("_local_scalar_dense")
def _local_scalar_dense(self: torch.Tensor) -> Any:
    """Give the only element as a number."""
    return torch_device.read(self).item()


def _on_host(name: str, overload: str = "default") -> Any:
    """A kernel of the host's that does not look at elements."""
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
    """See the bits of elements as another dtype: not here, but for its own."""
    if dtype == self.dtype:
        return self.view(self.shape)
    raise RuntimeError(
        f"view: the bits of {self.dtype} on the cluster cannot be seen as {dtype}\n"
        "  hint: x.to(dtype) converts the numbers; x.cpu().view(dtype) gives their bits"
    )


@raw("_has_compatible_shallow_copy_type")
def _has_compatible_shallow_copy_type(self, from_) -> bool:
    """Whether `x.data = y` may hand over y's memory, also from another device."""
    return True


@raw("resize_")
def resize_(self: torch.Tensor, size, *, memory_format=None) -> torch.Tensor:
    """Give a tensor another shape over its storage, which grows where it is too short.

    Raises:
        RuntimeError: the storage must grow, and other tensors share it.
    """
    if list(self.shape) == list(size) and memory_format is None:
        return self
    count, offset = 1, self.storage_offset()
    for length in size:
        count *= length
    storage = self.untyped_storage()
    needed = (offset + count) * self.element_size() if count else 0
    if needed > storage.nbytes():
        # The tensor's own reference and the one here.
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
    """Give a longer storage that begins with a tensor's."""
    old = tensor.untyped_storage()
    longer = empty([count], dtype=tensor.dtype)
    if old.nbytes():
        row = torch.empty(0, dtype=tensor.dtype, device="cluster").set_(old)
        longer[: row.numel()].copy_(row)
    return longer.untyped_storage()


def resize_out(out: torch.Tensor, size: tuple[int, ...]) -> None:
    """Resize a tensor for a result, as PyTorch does: with a warning where it had elements."""
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
    """Show all of a storage, in one row."""
    count = source.nbytes() // self.element_size()
    return _aten.set_.source_Storage_storage_offset.redispatch(
        _ON_HOST, self, source, 0, [count], [1]
    )


@raw("_assert_async", "_assert_async.msg", "_functional_assert_async.msg")
def assert_async(self: torch.Tensor, message: str = "", token: Any = None) -> Any:
    """Raise an error where the only element is 0; waits for it."""
    if not torch_device.read(self).item():
        raise RuntimeError(message or "Expected a value that is not 0")
    return token


@raw("set_")
def set_(self: torch.Tensor) -> torch.Tensor:
    """Make a tensor an empty one."""
    return resize_(self, [0])


@raw("is_same_size")
def is_same_size(self: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors, which may be on two devices, have one shape."""
    return self.shape == other.shape


@raw("is_set_to")
def is_set_to(self: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Whether two tensors show the same elements of one storage."""

    def where(one: torch.Tensor) -> tuple:
        return one.data_ptr(), one.shape, one.stride()

    return where(self) == where(tensor)
