"""Creation of tensors."""

from __future__ import annotations

from typing import Any

import torch

import gt
from gt._gt import torch_device
from gt.torch import dtypes
from gt.torch.kernels import RAW, raw


def _contiguous(size: Any) -> list[int]:
    """Return the strides of a contiguous tensor."""
    strides, step = [], 1
    for length in reversed(size):
        strides.append(step)
        step *= max(length, 1)
    return strides[::-1]


def strides_of(size: Any, memory_format: Any) -> list[int]:
    """Return the strides of a memory format."""
    if memory_format in (torch.channels_last, torch.channels_last_3d):
        order = (0, *range(2, len(size)), 1)
        strides = dict(zip(order, _contiguous([size[axis] for axis in order]), strict=True))
        return [strides[axis] for axis in range(len(size))]
    return _contiguous(size)


def check_layout(layout: Any) -> None:
    """Raise `RuntimeError` unless the layout is strided."""
    if layout not in (None, torch.strided):
        raise RuntimeError(f"the device cluster has no tensors of layout {layout}")


def check_device(device: Any) -> None:
    """Raise `RuntimeError` unless the device is cluster:0, the only device."""
    if device is not None and device.index not in (None, 0):
        raise RuntimeError(
            f"{device}: invalid device ordinal, there is 1 device, cluster:0, for all workers\n"
            "  hint: leave the number out; gt.signal.context chooses the workers of a tensor"
        )


@raw("empty.memory_format")
def empty(
    size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
) -> torch.Tensor:
    """Return an uninitialized tensor."""
    check_layout(layout)
    check_device(device)
    dtype = dtypes.to_gt(dtype or torch.get_default_dtype())
    return torch_device.blank(size, strides_of(size, memory_format), dtype)


def _filled(value: Any) -> Any:
    """Return the kernels that fill a new tensor with a number: by size, and like another tensor."""

    def fill(size, *, dtype=None, layout=None, device=None, pin_memory=None) -> torch.Tensor:
        check_layout(layout)
        check_device(device)
        dtype = dtypes.to_gt(dtype or torch.get_default_dtype())
        return torch_device.wrap(gt.full(tuple(size), value, dtype=dtype))

    def alike(
        self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
    ) -> torch.Tensor:
        is_plain = memory_format in (None, torch.preserve_format) and self.is_contiguous()
        if is_plain and (device is None or device.type == "cluster"):
            return fill(self.shape, dtype=dtype or self.dtype, layout=layout, device=device)
        made = torch.empty_like(
            self, dtype=dtype, layout=layout, device=device, memory_format=memory_format
        )
        return made.fill_(value)

    return fill, alike


for _name, _value in (("zeros", 0), ("ones", 1)):
    _fill, _alike = _filled(_value)
    raw(_name)(_fill)
    raw(f"{_name}_like")(_alike)
RAW["_efficientzerotensor"] = RAW["zeros"]


@raw("empty_strided")
def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, pin_memory=None
) -> torch.Tensor:
    """Return an uninitialized tensor with strides."""
    check_layout(layout)
    check_device(device)
    return torch_device.blank(size, stride, dtypes.to_gt(dtype or torch.get_default_dtype()))
