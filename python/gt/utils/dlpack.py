"""Tensors of other libraries, and for them, without a copy where that is possible."""

from gt import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
