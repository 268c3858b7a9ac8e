"""Linear algebra, following `torch.linalg`."""

from gt.ops import namespace as _namespace
from gt.ops.linalg_checks import LinAlgError

globals().update(_namespace("gt.linalg"))

__all__ = sorted([*_namespace("gt.linalg"), LinAlgError.__name__])
