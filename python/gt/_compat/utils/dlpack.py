"""Exchange of tensors with other libraries by DLPack, by copying the values."""

from gt import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
