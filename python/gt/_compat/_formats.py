"""PyTorch's names for memory layouts, which GT chooses by itself."""

from __future__ import annotations


class layout:
    """A storage layout; all tensors of GT are `gt.strided`."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"gt.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """An order of axes in memory; accepted wherever PyTorch accepts one, without effect."""


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def check_layout(operation: str, given: layout | None) -> None:
    """Raise an error unless a layout is None or `gt.strided`."""
    if given is not None and given is not strided:
        raise ValueError(f"{operation}: layout is {given}, but all tensors of GT are gt.strided")
