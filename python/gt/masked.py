"""Reductions and normalizations of some of the elements, as `torch.masked` has them."""

from gt.ops import namespace as _namespace

globals().update(_namespace("gt.masked"))

__all__ = sorted(_namespace("gt.masked"))
