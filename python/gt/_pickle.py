"""Tensors in pickles: their values, as bytes, with dtype, shape and what they are."""

from __future__ import annotations

from typing import Any

from gt import _gt
from gt._gt import Tensor


def reduce(tensor: Tensor) -> tuple:
    """Say how a tensor is made again; waits for its values.

    Raises:
        RuntimeError: a result of tensors that require gradients, whose history cannot be kept.
    """
    if not tensor.is_leaf:
        raise RuntimeError(
            "pickle: a tensor that is the result of others has a history, which is not kept\n"
            "  hint: detach() it"
        )
    values = _gt.to_bytes(tensor)
    state = getattr(tensor, "__dict__", None) or None
    what = (type(tensor), values, tensor.dtype, tuple(tensor.shape), tensor.requires_grad)
    return restore, what, state


def restore(
    kind: type[Tensor], values: Any, dtype: Any, shape: tuple[int, ...], requires_grad: bool
) -> Tensor:
    """Make a tensor from what `reduce` gives, in this thread's session."""
    tensor = _gt.from_bytes(values, dtype, shape)
    if kind is not Tensor:
        tensor = kind(tensor)
    return tensor.requires_grad_(requires_grad)
