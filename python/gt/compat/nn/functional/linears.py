"""Linear maps."""

from __future__ import annotations

from gt._gt import Tensor
from gt.ops.registry import function

from .common import NN


@function(namespace=NN, autocast="lower")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input @ weight.T + bias` over the last axis; a weight of one axis is a single row.

    >>> gt.nn.functional.linear(gt.ones(1, 2), gt.ones(3, 2))
    tensor([[2., 2., 2.]], dtype=float32)
    """
    out = input @ (weight if weight.ndim == 1 else weight.mT)
    return out if bias is None else out + bias
