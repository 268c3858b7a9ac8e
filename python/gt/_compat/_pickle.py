"""Pickling of tensors: the values as bytes, with type, dtype, shape and `requires_grad`."""

from __future__ import annotations

from typing import Any

from gt import _gt
from gt._gt import Tensor


def reduce(tensor: Tensor) -> tuple[Any, ...]:
    """Return how to restore a tensor, as `__reduce__` does. Waits for its values.

    Raises:
        RuntimeError: the tensor is not a leaf; its autograd history cannot be pickled.
    """
    if not tensor.is_leaf:
        raise RuntimeError(
            "pickle: the autograd history of a tensor that is not a leaf cannot be pickled\n"
            "  hint: detach() it"
        )
    values = _gt.to_bytes(tensor)
    state = getattr(tensor, "__dict__", None) or None
    what = (type(tensor), values, tensor.dtype, tuple(tensor.shape), tensor.requires_grad)
    return restore, what, state


def restore(
    kind: type[Tensor], values: Any, dtype: Any, shape: tuple[int, ...], requires_grad: bool
) -> Tensor:
    """Return a tensor from the arguments in `reduce`'s result, in this thread's session."""
    tensor = _gt.from_bytes(values, dtype, shape)
    if kind is not Tensor:
        tensor = kind(tensor)
    return tensor.requires_grad_(requires_grad)
