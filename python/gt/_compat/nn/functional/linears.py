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
    try:
        out = input @ (weight if weight.ndim == 1 else weight.mT)
    except ValueError as error:
        raise (_misfit(input, weight) or error) from None
    return out if bias is None else out + bias


def _misfit(input: Tensor, weight: Tensor) -> ValueError | None:
    """Return the error for an input that a weight does not fit, if that is what is wrong."""
    wanted = weight.shape[-1]
    if input.ndim and input.shape[-1] == wanted:
        return None
    return ValueError(
        f"linear: input of shape {input.shape} does not fit a weight of shape {weight.shape}, "
        f"which takes {wanted} features in the last axis"
    )
