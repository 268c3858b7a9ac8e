"""Linear maps."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn.functional.common import NN
from gt.ops.registry import function


@function(namespace=NN)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Give `input @ weight.T + bias`: the last axis is mapped; without rows a weight is one row.

    >>> gt.nn.functional.linear(gt.ones(1, 2), gt.ones(3, 2))
    tensor([[2., 2., 2.]], dtype=float32)
    """
    out = input @ (weight if weight.ndim == 1 else weight.mT)
    return out if bias is None else out + bias
