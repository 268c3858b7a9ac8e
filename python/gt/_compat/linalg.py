"""Linear algebra, following `torch.linalg`."""

from gt._public import show_callers
from gt.ops.linalg_checks import LinAlgError
from gt.ops.registry import namespace as _namespace

globals().update(_namespace("gt.linalg"))

__all__ = sorted([*_namespace("gt.linalg"), LinAlgError.__name__])

show_callers(globals())
