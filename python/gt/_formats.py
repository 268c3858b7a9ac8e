"""PyTorch's names for how tensors lie in memory; GT decides that by itself."""

from __future__ import annotations


class layout:
    """How the elements of a tensor are kept; all tensors of GT are `gt.strided`."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"gt.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """The order of a tensor's axes in memory; accepted wherever PyTorch has it, without effect."""


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def check_layout(operation: str, given: layout | None) -> None:
    """Raise unless a layout is the one that GT has."""
    if given is not None and given is not strided:
        raise ValueError(f"{operation}: layout is {given}, but all tensors of GT are gt.strided")
