"""Series, frames and literals of polars from GT's tensors, as from PyTorch's."""

from __future__ import annotations

from types import ModuleType

import gt
from gt.integrations.functions import converting, replace


def extend(polars: ModuleType) -> None:
    """Let the constructors and `lit` take tensors.

    Args:
        polars: the package.
    """
    from_arrays = converting(gt.Tensor.numpy)
    for kind in (polars.Series, polars.DataFrame):
        kind.__init__ = from_arrays(kind.__init__)
    replace(polars, "lit", from_arrays)
