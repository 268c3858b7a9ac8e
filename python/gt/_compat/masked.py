"""Reductions and normalizations of some of the elements, following `torch.masked`."""

from gt.ops.registry import namespace as _namespace

globals().update(_namespace("gt.masked"))

__all__ = sorted(_namespace("gt.masked"))
