"""Window functions, as in `torch.signal.windows`."""

from gt._public import show_callers
from gt.ops.registry import namespace as _namespace

globals().update(_namespace("gt.signal.windows"))

__all__ = sorted(_namespace("gt.signal.windows"))


show_callers(globals())
