"""`torch.cluster.comm`: copies between devices, of which there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]

_DEVICE = "cluster"


def _check(devices: Sequence[Any] | None) -> int:
    """Return the number of devices in a list, all of which must be cluster:0."""
    from gt.torch.cluster import set_device

    for one in devices or ():
        set_device(one)
    return 1 if devices is None else len(devices)


def broadcast(
    tensor: torch.Tensor, devices: Sequence[Any] | None = None, *, out: Any = None
) -> tuple[torch.Tensor, ...]:
    """Return copies of a tensor on each of the devices, or copy it to the tensors of `out`."""
    if out is not None:
        return tuple(one.copy_(tensor) for one in out)
    return (tensor.to(_DEVICE),) * _check(devices)


def broadcast_coalesced(
    tensors: Sequence[torch.Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> list[list[torch.Tensor]]:
    """Return copies of several tensors on each of the devices."""
    return [[one.to(_DEVICE) for one in tensors] for _ in range(_check(devices))]


def reduce_add(inputs: Sequence[torch.Tensor], destination: Any = None) -> torch.Tensor:
    """Return the sum of tensors."""
    total = inputs[0].to(_DEVICE)
    for one in inputs[1:]:
        total = total + one.to(_DEVICE)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[torch.Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[torch.Tensor, ...]:
    """Return the sums of corresponding tensors of several lists."""
    return tuple(reduce_add(of) for of in zip(*inputs, strict=True))


def scatter(
    tensor: torch.Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Any = None,
) -> tuple[torch.Tensor, ...]:
    """Return the parts of a tensor along an axis, one for each of the devices."""
    if out is not None:
        sizes = [one.shape[dim] for one in out]
        parts = zip(out, tensor.split(sizes, dim), strict=True)
        return tuple(one.copy_(part) for one, part in parts)
    tensor = tensor.to(_DEVICE)
    count = _check(devices)
    if chunk_sizes is not None:
        return tensor.split(list(chunk_sizes), dim)
    return tensor.chunk(count, dim)


def gather(
    tensors: Sequence[torch.Tensor], dim: int = 0, destination: Any = None, *, out: Any = None
) -> torch.Tensor:
    """Return the concatenation of tensors along an axis, on the CPU for destination -1 or "cpu"."""
    to_host = destination == -1 or (destination is not None and destination == "cpu")
    if out is not None:
        return out.copy_(torch.cat([one.to(out.device) for one in tensors], dim))
    return torch.cat([one.to("cpu" if to_host else _DEVICE) for one in tensors], dim)
