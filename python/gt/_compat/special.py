"""Special functions, following `torch.special`."""

from gt._public import show_callers
from gt.ops.registry import namespace as _namespace

globals().update(_namespace("gt.special"))

__all__ = sorted(_namespace("gt.special"))

show_callers(globals())
