"""Handles that remove hooks."""

from gt.nn.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
