"""Windows: factors that fade the ends of a signal out, as `torch.signal.windows` has them."""

from gt.ops import namespace as _namespace

globals().update(_namespace("gt.signal.windows"))

__all__ = sorted(_namespace("gt.signal.windows"))
